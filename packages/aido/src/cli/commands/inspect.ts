import type { ExecInfo, SandboxInfo } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { formatBytes, formatDuration, formatUntil } from "../output/format.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { type Column, table } from "../output/table.ts";
import { describeState } from "./list.ts";

export async function inspect(context: CliContext, sandbox: string): Promise<number> {
  const aido = await context.open({ sandbox });
  const info = await aido.sandboxes.get(sandbox);
  const execs = await aido.execs.list(info.id);
  await printResult(context, { ...info, execs }, () => {
    const head = fields(info, context.now())
      .map(([title, value]) => `${`${title}:`.padEnd(13)}${printable(value)}\n`)
      .join("");
    return execs.length === 0 ? head : `${head}\n${table(execs, EXEC_COLUMNS, context.stdout.columns)}`;
  });
  return 0;
}

export const EXEC_COLUMNS: readonly Column<ExecInfo>[] = [
  { title: "EXEC", value: ({ id }) => id },
  { title: "STATUS", value: ({ status }) => status.replaceAll("_", " ") },
  {
    title: "EXIT",
    value: ({ exitCode }) => (exitCode === undefined ? "-" : String(exitCode)),
    align: "right",
  },
  { title: "TOOK", value: ({ durationMs }) => (durationMs === undefined ? "-" : formatDuration(durationMs)) },
  { title: "STARTED", value: ({ startedAt }) => startedAt.toISOString() },
  { title: "COMMAND", value: ({ argv }) => argv.join(" "), flexible: true },
];

function fields(info: SandboxInfo, now: Date): [string, string][] {
  const { limits } = info;
  return [
    ["id", info.id],
    ["name", info.name ?? "-"],
    ["state", describeState(info)],
    ["image", info.image],
    ...(info.programs === undefined ? [] : [["programs", info.programs] as [string, string]]),
    ["driver", info.driver],
    ["isolation", info.isolation],
    ["network", info.network],
    ["profile", info.profile],
    ["workdir", info.workdir],
    ...(info.workspace === undefined ? [] : [["workspace", info.workspace] as [string, string]]),
    ["container", info.containerId ?? "-"],
    ["cpus", String(limits.cpus)],
    ["memory", formatBytes(limits.memoryBytes)],
    ["pids", String(limits.pids)],
    ["disk", limits.diskBytes === 0 ? "no limit" : formatBytes(limits.diskBytes)],
    ["created", info.createdAt.toISOString()],
    ["started", info.startedAt?.toISOString() ?? "-"],
    ["stopped", info.stoppedAt?.toISOString() ?? "-"],
    ["tier", info.tier === undefined ? "-" : `${info.tier} since ${info.tierSince?.toISOString() ?? "-"}`],
    ["ends in", info.state === "running" ? formatUntil(info.expiresAt, now) : "-"],
    ["stops idle", info.idleTimeoutMs === 0 ? "never" : `after ${formatDuration(info.idleTimeoutMs)}`],
    ["last used", info.lastActivityAt.toISOString()],
    ["auto resume", info.autoResume ? "yes" : "no"],
    ...Object.entries(info.labels).map(([name, value]): [string, string] => ["label", `${name}=${value}`]),
  ];
}
