import { AidoError, type ExecInfo, isAidoError } from "@aido/sdk/protocol";
import type { ExecRecord, SandboxRecord } from "../../store/store.ts";
import { SUPERVISOR_EXIT } from "../../supervisor/protocol.ts";
import type { WorkerDeps } from "./sandbox-workers.ts";
import { adapterExecId } from "./worker-name.ts";
import { WORKER_LABEL } from "./worker-sandbox.ts";
import type { AdapterStart, OutputOffsets, WorkerEnd, WorkerEvent } from "./workers.ts";

const ADAPTER = "/opt/aimi/acp-adapter";
/** Of a start that another process was killed in: each of them takes the supervisor some seconds to be sure of. */
const MOST_STARTS = 5;
const GIVE_LIMIT_MS = 30_000;
const GIVE_PAUSE_MS = 50;
/** Once its end is recorded the supervisor ends the container at once; this bounds the wait for an engine at work. */
const END_LIMIT_MS = 10_000;

/** The one command of a worker, which its container ends with. */
export class WorkerAdapter {
  readonly #deps: WorkerDeps;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
  }

  /**
   * A process may be killed at any point of this, and another call completes it: an exec that is in the store and that
   * no supervisor knows is followed by one with the next id, a task that was not given is given, and that it was given
   * is written down last. Until then the worker is pending, so whoever looks knows that there is something to complete.
   */
  async start(worker: SandboxRecord, start: AdapterStart, signal?: AbortSignal): Promise<void> {
    if (worker.labels[WORKER_LABEL.adapter] !== undefined) return;
    if (await this.hasEnded(worker)) return;
    try {
      await this.#startOnce(worker, start, signal);
    } catch (thrown) {
      // Another process may have started it, and it is through with its task already.
      if (!isGone(thrown) || !(await this.#isStartedElsewhere(worker, signal))) throw thrown;
    }
  }

  /** Makes way for another adapter, once the last one has ended. */
  async clear(worker: SandboxRecord): Promise<void> {
    if ((await this.#find(worker)) === undefined) return;
    const { [WORKER_LABEL.adapter]: _, [WORKER_LABEL.round]: round = "0", ...labels } = worker.labels;
    await this.#deps.store.sandboxes.update(worker.id, {
      labels: { ...labels, [WORKER_LABEL.round]: String(Number(round) + 1) },
    });
  }

  async *follow(
    worker: SandboxRecord,
    from: OutputOffsets,
    signal?: AbortSignal,
  ): AsyncGenerator<WorkerEvent> {
    const { execs } = this.#deps;
    const { id } = await this.#get(worker);
    const { untilNow = false, ...range } = from;
    // Asked before the output is read: what is written at the very end is read before the end is told.
    const isOver = untilNow && (await execs.get(worker.id, id)).status !== "running";
    for await (const { stream, offset, data } of execs.output(
      worker.id,
      id,
      { ...range, follow: !untilNow },
      signal,
    )) {
      yield { type: "output", stream, offset, data };
    }
    if (untilNow && !isOver) return;
    yield await this.#end(worker, await execs.wait(worker.id, id, signal), signal);
  }

  /** Resolves when it has ended, and is recorded, so that its container ends too. */
  async stop(worker: SandboxRecord, graceMs: number): Promise<void> {
    const { execs } = this.#deps;
    const exec = await this.#find(worker);
    if (exec === undefined || exec.status !== "running") return;
    try {
      await execs.kill(worker.id, exec.id, { signal: "TERM", graceMs });
      const limit = AbortSignal.timeout(graceMs + END_LIMIT_MS);
      await this.#end(worker, await execs.wait(worker.id, exec.id, limit), limit);
    } catch (thrown) {
      // A container that has ended has nothing to stop.
      const container = await this.#deps.driver.inspect(worker.id);
      if (container?.state === "running") throw thrown;
    }
  }

  /** It ran, and its end is recorded. */
  async hasEnded(worker: SandboxRecord): Promise<boolean> {
    const exec = await this.#find(worker);
    const isOver = exec !== undefined && exec.status !== "running" && exec.status !== "lost";
    return isOver && exec.startError === undefined;
  }

  async #startOnce(worker: SandboxRecord, start: AdapterStart, signal?: AbortSignal): Promise<void> {
    // A container that has ended meanwhile is seen here, and not by the command that cannot be started in it.
    await this.#deps.sandboxes.get(worker.id);
    const task = Buffer.from(`${JSON.stringify(start.request)}\n`);
    const env = { ...start.env, ...worker.env, CONTAINER_ID: worker.containerId ?? "" };
    const limit = AbortSignal.timeout(GIVE_LIMIT_MS + MOST_STARTS * END_LIMIT_MS);
    const ends = signal === undefined ? limit : AbortSignal.any([limit, signal]);
    for (let attempt = 1; attempt <= MOST_STARTS; attempt += 1) {
      const id = attempt === 1 ? baseId(worker) : `${baseId(worker)}.${attempt}`;
      const exec = await this.#startExec(worker, { id, argv: [ADAPTER], stdin: true, env }, ends);
      if (exec.status !== "lost" && (await this.#give(worker, id, task, ends))) return;
      await this.#mustRun(worker);
    }
    throw new AidoError("EXECUTION_FAILED", `The adapter of ${worker.name} could not be started`, {
      hint: "Remove the worker and make it anew.",
      details: { name: worker.name },
    });
  }

  async #startExec(
    worker: SandboxRecord,
    request: Parameters<WorkerDeps["execs"]["startIn"]>[1],
    signal: AbortSignal,
  ): Promise<ExecInfo> {
    const { execs, sandboxes } = this.#deps;
    const record = await sandboxes.resolveRunning(worker.id);
    try {
      return await execs.startIn(record, request, signal, { isMain: true });
    } catch (thrown) {
      if (!isAidoError(thrown, "EXECUTION_FAILED") || thrown.details["errno"] !== "ENOENT") throw thrown;
      throw new AidoError(
        "EXECUTION_FAILED",
        `The image ${record.image} has no adapter at ${ADAPTER}, or not what runs it`,
        {
          hint: "`aido image build --swarm` makes one that has it.",
          details: thrown.details,
          cause: thrown,
        },
      );
    }
  }

  /** False when the exec turned out never to have been started. */
  async #give(worker: SandboxRecord, id: string, task: Buffer, signal: AbortSignal): Promise<boolean> {
    const { execs, clock, store } = this.#deps;
    for (;;) {
      const isGiven = await execs.giveStdin(worker.id, id, task, signal).catch((thrown: unknown) => {
        if (isAidoError(thrown, "EXECUTION_CONFLICT")) return true;
        throw thrown;
      });
      const { labels } = (await store.sandboxes.get(worker.id)) ?? worker;
      if (labels[WORKER_LABEL.adapter] !== undefined) return true;
      if (isGiven) {
        if ((await execs.get(worker.id, id)).status === "lost") return false;
        await store.sandboxes.update(worker.id, { labels: { ...labels, [WORKER_LABEL.adapter]: id } });
        return true;
      }
      await clock.sleep(GIVE_PAUSE_MS, signal);
    }
  }

  /** Whoever gave the task writes that down a moment later. */
  async #isStartedElsewhere(worker: SandboxRecord, signal?: AbortSignal): Promise<boolean> {
    const { clock, store } = this.#deps;
    for (let waitedMs = 0; waitedMs < END_LIMIT_MS; waitedMs += GIVE_PAUSE_MS) {
      const { labels } = (await store.sandboxes.get(worker.id)) ?? worker;
      if (labels[WORKER_LABEL.adapter] !== undefined || (await this.hasEnded(worker))) return true;
      if ((await this.#find(worker))?.status !== "running") return false;
      await clock.sleep(GIVE_PAUSE_MS, signal);
    }
    return false;
  }

  async #mustRun(worker: SandboxRecord): Promise<void> {
    const container = await this.#deps.driver.inspect(worker.id);
    if (container?.state === "running") return;
    throw new AidoError("CONTAINER_NOT_RUNNING", `The worker ${worker.name} has ended`, {
      hint: "Remove it and make it anew.",
      details: { name: worker.name, exitCode: container?.exitCode },
    });
  }

  /** The container's end comes first, so that whoever asks for its status now sees it. */
  async #end(worker: SandboxRecord, exec: ExecInfo, signal?: AbortSignal): Promise<WorkerEnd> {
    const { sandboxes, driver } = this.#deps;
    const limit = AbortSignal.timeout(END_LIMIT_MS);
    const ends = signal === undefined ? limit : AbortSignal.any([limit, signal]);
    await sandboxes.untilEnded(worker.id, ends).catch((thrown: unknown) => {
      if (!limit.aborted && !isAidoError(thrown)) throw thrown;
    });
    if (exec.status !== "lost") {
      const outOfMemory = exec.status === "out_of_memory";
      const timedOut = exec.status === "timeout" || undefined;
      return { type: "end", exitCode: exec.exitCode, signal: exec.signal, outOfMemory, timedOut };
    }
    // Nobody heard the adapter's end; the container has its code.
    const container = await driver.inspect(worker.id);
    const { exitCode, outOfMemory = false } = container ?? {};
    const timedOut = exitCode === SUPERVISOR_EXIT.deadline || undefined;
    return { type: "end", exitCode, signal: undefined, outOfMemory, timedOut };
  }

  async #get(worker: SandboxRecord): Promise<ExecRecord> {
    const exec = await this.#find(worker);
    if (exec !== undefined) return exec;
    throw new AidoError("EXECUTION_NOT_FOUND", `The worker ${worker.name} was not started`, {
      details: { name: worker.name },
    });
  }

  /** The last that was started: those before it never came to run. */
  async #find(worker: SandboxRecord): Promise<ExecRecord | undefined> {
    const id = baseId(worker);
    const execs = await this.#deps.store.execs.list(worker.id);
    const own = execs.filter((exec) => exec.id === id || exec.id.startsWith(`${id}.`));
    return own.reduce<ExecRecord | undefined>(
      (last, exec) => (last === undefined || exec.id > last.id ? exec : last),
      undefined,
    );
  }
}

function isGone(thrown: unknown): boolean {
  return isAidoError(thrown, "CONTAINER_LOST") || isAidoError(thrown, "CONTAINER_NOT_RUNNING");
}

function baseId({ labels, name = "" }: SandboxRecord): string {
  const first = adapterExecId(labels[WORKER_LABEL.swarm] ?? "", name);
  const round = labels[WORKER_LABEL.round];
  return round === undefined ? first : `${first}-${round}`;
}
