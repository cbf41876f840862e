import type { Aido } from "@aido/sdk";
import type { SandboxStats } from "@aido/sdk/protocol";
import { isAidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { isBrokenPipe } from "../output/byte-sink.ts";
import { formatBytes, formatDuration } from "../output/format.ts";
import { note, printJsonLine, printResult } from "../output/print.ts";
import { type Column, table } from "../output/table.ts";
import { allSandboxes } from "./all-sandboxes.ts";

export interface StatsOptions {
  watch?: boolean;
  interval?: string;
}

interface Sample extends SandboxStats {
  sandboxId: string;
  name: string | undefined;
  memoryLimitBytes: number;
  /** Share of one core since the sample before; absent in the first. */
  cpuPercent?: number;
}

export async function stats(
  context: CliContext,
  sandbox: string | undefined,
  options: StatsOptions,
): Promise<number> {
  const intervalMs = parseDuration(options.interval ?? "1s", "--interval");
  const aido = await context.open({ sandbox });
  const first = await sample(aido, sandbox, new Map());
  if (!options.watch) {
    if (first.length === 0) await note(context, "No sandbox is running. Make one with: aido create");
    if (first.length > 0 || context.globals.json)
      await printResult(context, first, () => draw(context, first));
    return 0;
  }
  await watch(context, aido, { sandbox, first, intervalMs });
  return 0;
}

async function watch(
  context: CliContext,
  aido: Aido,
  { sandbox, first, intervalMs }: { sandbox: string | undefined; first: Sample[]; intervalMs: number },
): Promise<void> {
  const stop = new AbortController();
  const stops = (["SIGINT", "SIGTERM"] as const).map((name) => context.signals.on(name, () => stop.abort()));
  try {
    for (let samples = first; ; ) {
      await show(context, samples);
      if (!(await pause(intervalMs, stop.signal))) return;
      const before = new Map(samples.map((each) => [each.sandboxId, each]));
      samples = await sample(aido, sandbox, before);
    }
  } catch (thrown) {
    if (!isBrokenPipe(thrown)) throw thrown;
  } finally {
    for (const remove of stops) remove();
  }
}

/** False when it was interrupted. */
function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const timer = setTimeout(() => resolve(true), ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}

async function show(context: CliContext, samples: readonly Sample[]): Promise<void> {
  if (context.globals.json) {
    for (const each of samples) await printJsonLine(context, each);
    return;
  }
  const text = draw(context, samples);
  await context.stdout.write(context.stdout.isTerminal ? `\u001b[H\u001b[2J${text}` : text);
}

async function sample(
  aido: Aido,
  sandbox: string | undefined,
  before: ReadonlyMap<string, Sample>,
): Promise<Sample[]> {
  const infos =
    sandbox === undefined
      ? await allSandboxes(aido, { states: ["running"] })
      : [await aido.sandboxes.get(sandbox)];
  const samples: Sample[] = [];
  for (const { id, name, limits } of infos) {
    try {
      const now = await aido.sandboxes.stats(id);
      const last = before.get(id);
      const elapsed = last === undefined ? 0 : now.at.getTime() - last.at.getTime();
      const percent =
        last === undefined || elapsed <= 0 ? undefined : ((now.cpuMs - last.cpuMs) / elapsed) * 100;
      samples.push({
        sandboxId: id,
        name,
        ...now,
        memoryLimitBytes: limits.memoryBytes,
        ...(percent === undefined ? {} : { cpuPercent: Math.max(0, Math.round(percent * 10) / 10) }),
      });
    } catch (thrown) {
      // One of many may end between the list and the question.
      if (sandbox !== undefined || !isAidoError(thrown)) throw thrown;
    }
  }
  return samples;
}

const COLUMNS: readonly Column<Sample>[] = [
  { title: "SANDBOX", value: ({ sandboxId }) => sandboxId },
  { title: "NAME", value: ({ name }) => name ?? "-", flexible: true },
  {
    title: "CPU",
    value: ({ cpuPercent }) => (cpuPercent === undefined ? "-" : `${cpuPercent}%`),
    align: "right",
  },
  { title: "CPU TIME", value: ({ cpuMs }) => formatDuration(cpuMs), align: "right" },
  {
    title: "MEMORY",
    value: ({ memoryBytes, memoryLimitBytes }) =>
      `${formatBytes(memoryBytes)} / ${memoryLimitBytes === 0 ? "no limit" : formatBytes(memoryLimitBytes)}`,
    align: "right",
  },
  { title: "PIDS", value: ({ pids }) => String(pids), align: "right" },
];

function draw(context: CliContext, samples: readonly Sample[]): string {
  return table(samples, COLUMNS, context.stdout.columns);
}
