import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { SwarmContainer } from "../../core/swarm/state/swarm-state.ts";
import { SwarmStateFile } from "../../core/swarm/state/swarm-state-file.ts";
import { resolveWorker } from "../../core/swarm/workers/resolve-worker.ts";
import type { WorkerEnd, WorkerEvent, WorkerOutput, Workers } from "../../core/swarm/workers/workers.ts";
import type { CliContext } from "../context.ts";
import { parseNumber } from "../options/numbers.ts";
import { note, printJsonLine } from "../output/print.ts";
import { pumpOutput } from "../output/pump-output.ts";
import { WorkerLogPrinter } from "../output/swarm/worker-log-printer.ts";

export interface SwarmLogsOptions {
  follow?: boolean;
  sinceStart?: boolean;
  tail?: string;
  raw?: boolean;
  dir?: string;
}

/** Everything that was there when the reading began is behind it. */
const CAUGHT_UP = { type: "caught-up" } as const;
type Told = WorkerEvent | typeof CAUGHT_UP;

const MOST_TAIL = 1_000_000;
const START_LOOK_MS = 500;

/** What a worker's adapter wrote, also when the worker has ended. */
export async function swarmLogs(
  context: CliContext,
  reference: string,
  options: SwarmLogsOptions,
): Promise<number> {
  const tail = checkOptions(options);
  const project = resolve(context.cwd, options.dir ?? ".");
  const stop = new AbortController();
  const removers = (["SIGINT", "SIGTERM"] as const).map((name) =>
    context.signals.on(name, () => stop.abort()),
  );
  try {
    await context.withWorkers(async (workers) => {
      const known = await knownContainers(project, stop.signal);
      const listed = (await workers.list(stop.signal)).map(({ name }) => name);
      const name = resolveWorker(reference, [...listed, ...known.keys()]);
      const events = explained(read(context, workers, name, options, stop.signal), name, known.get(name));
      await (options.raw ? printRaw(context, events, stop) : printReadable(context, events, tail));
    }, project);
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
  } finally {
    for (const remove of removers) remove();
  }
  return 0;
}

function checkOptions({ tail, sinceStart, raw }: SwarmLogsOptions): number | undefined {
  if (tail === undefined) return undefined;
  if (sinceStart || raw) {
    throw new AidoError(
      "VALIDATION_ERROR",
      `--tail and ${raw ? "--raw" : "--since-start"} exclude each other`,
      {
        hint: raw ? "--tail counts lines that people read." : "Choose one of them.",
      },
    );
  }
  return parseNumber(tail, "--tail", { least: 0, most: MOST_TAIL, whole: true });
}

/** Those of the swarm's state: one that was removed is told apart from one that never was. */
async function knownContainers(
  project: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SwarmContainer>> {
  try {
    const { containers } = await new SwarmStateFile({ project, signal }).read();
    return new Map(containers.map((container) => [container.containerName, container]));
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_NOT_FOUND")) return new Map();
    throw thrown;
  }
}

/** First what is recorded, then, when asked for, what comes. A worker that has not started is waited for. */
async function* read(
  context: CliContext,
  workers: Workers,
  name: string,
  { follow }: SwarmLogsOptions,
  signal: AbortSignal,
): AsyncGenerator<Told> {
  const at = { stdoutOffset: 0, stderrOffset: 0 };
  for (let isWaiting = false; ; isWaiting = true) {
    try {
      for await (const event of workers.follow(name, { ...at, untilNow: true }, signal)) {
        yield event;
        if (event.type === "end") return;
        at[`${event.stream}Offset`] = event.offset + event.data.length;
      }
      break;
    } catch (thrown) {
      if (!follow || !isAidoError(thrown, "EXECUTION_NOT_FOUND")) throw thrown;
      if (!isWaiting) await note(context, `${name} has not started; waiting for it`);
      await sleep(START_LOOK_MS, undefined, { signal });
    }
  }
  yield CAUGHT_UP;
  if (follow) yield* workers.follow(name, at, signal);
}

async function* explained(
  events: AsyncGenerator<Told>,
  name: string,
  known: SwarmContainer | undefined,
): AsyncGenerator<Told> {
  try {
    yield* events;
  } catch (thrown) {
    if (isAidoError(thrown, "EXECUTION_NOT_FOUND")) {
      throw new AidoError("EXECUTION_NOT_FOUND", `${name} has not started, so it has written nothing`, {
        hint: "--follow waits for it.",
        details: { name },
      });
    }
    if (!isAidoError(thrown, "CONTAINER_NOT_FOUND") || known === undefined) throw thrown;
    const isPending = known.status === "pending";
    throw new AidoError(
      "CONTAINER_NOT_FOUND",
      isPending
        ? `${name} is pending: it has no container yet, so it has written nothing`
        : `${name} (${known.status}) was removed, and what it wrote with it`,
      {
        hint: isPending
          ? "It starts when another worker has ended."
          : `What it committed is on ${known.branchName}.`,
        details: { name, status: known.status },
      },
    );
  }
}

async function printReadable(
  context: CliContext,
  events: AsyncIterable<Told>,
  tail: number | undefined,
): Promise<void> {
  const printer = new WorkerLogPrinter(context, tail);
  for await (const event of events) {
    if (event.type === "output") await printer.print(event);
    else if (event.type === "caught-up") await printer.catchUp();
    else {
      await printer.end();
      await printEnd(context, event);
    }
  }
}

/** Byte for byte, each stream to its own. */
async function printRaw(
  context: CliContext,
  events: AsyncIterable<Told>,
  stop: AbortController,
): Promise<void> {
  let end: WorkerEnd | undefined;
  async function* outputs(): AsyncGenerator<WorkerOutput> {
    for await (const event of events) {
      if (event.type === "output") yield event;
      else if (event.type === "end") end = event;
    }
  }
  await pumpOutput(context, outputs(), { onClosed: () => stop.abort() });
  if (end !== undefined) await printEnd(context, end);
}

async function printEnd(context: CliContext, end: WorkerEnd): Promise<void> {
  if (context.globals.json) {
    const { exitCode = null, signal = null, outOfMemory } = end;
    await printJsonLine(context, { type: "end", exitCode, signal, outOfMemory });
    return;
  }
  const how =
    end.exitCode === undefined
      ? "its exit code is not known any more"
      : `it ended with exit code ${end.exitCode}`;
  const why = end.outOfMemory ? ", out of memory" : end.signal === undefined ? "" : `, by ${end.signal}`;
  await note(context, `-- ${how}${why}`);
}
