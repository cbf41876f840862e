import { SANDBOX_STATES, type SandboxInfo } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parsePairs } from "../options/pairs.ts";
import { formatAge, formatUntil } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { type Column, table } from "../output/table.ts";
import { allSandboxes } from "./all-sandboxes.ts";

export interface ListOptions {
  all?: boolean;
  label?: readonly string[];
}

export async function list(context: CliContext, options: ListOptions): Promise<number> {
  const labels = parsePairs(options.label ?? [], "--label");
  const aido = await context.open();
  const sandboxes = await allSandboxes(aido, {
    states: options.all ? SANDBOX_STATES : ["pending", "running", "stopped"],
    labels: Object.keys(labels).length === 0 ? undefined : labels,
  });
  if (context.globals.quiet && !context.globals.json) {
    await context.stdout.write(sandboxes.map(({ id }) => `${id}\n`).join(""));
    return 0;
  }
  if (sandboxes.length === 0 && !context.globals.json) {
    await note(context, "No sandboxes. Make one with: aido sandbox up   or   aido create --image <image>");
    return 0;
  }
  await printResult(context, sandboxes, () =>
    table(sandboxes, columns(context, context.globals.verbose), context.stdout.columns),
  );
  return 0;
}

/** The state, and for what has ended how it came to that and where its files are. */
export function describeState({ state, endReason, tier }: SandboxInfo): string {
  const how = endReason === undefined || endReason === "stopped" ? [] : [endReason.replaceAll("_", " ")];
  const notes = state === "stopped" && tier !== undefined && tier !== "hot" ? [...how, tier] : how;
  return notes.length === 0 ? state : `${state} (${notes.join(", ")})`;
}

function columns(context: CliContext, verbose: boolean): Column<SandboxInfo>[] {
  const now = context.now();
  const all: (Column<SandboxInfo> & { verbose?: boolean })[] = [
    { title: "ID", value: ({ id }) => id },
    { title: "NAME", value: ({ name }) => name ?? "-", flexible: true },
    { title: "STATE", value: describeState },
    { title: "IMAGE", value: ({ image }) => image, flexible: true },
    { title: "DRIVER", value: ({ driver }) => driver },
    { title: "ISOLATION", value: ({ isolation }) => isolation, verbose: true },
    { title: "NETWORK", value: ({ network }) => network, verbose: true },
    { title: "CREATED", value: ({ createdAt }) => formatAge(createdAt, now) },
    {
      title: "ENDS IN",
      value: (each) => (each.state === "running" ? formatUntil(each.expiresAt, now) : "-"),
    },
    {
      title: "LABELS",
      value: ({ labels }) =>
        Object.entries(labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(",") || "-",
      flexible: true,
      verbose: true,
    },
  ];
  return all.filter((column) => verbose || !column.verbose);
}
