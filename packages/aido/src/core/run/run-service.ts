import type { RunLogs, RunOptions, RunOutput, Runs, StartRun, UpRequest } from "@aido/sdk";
import { AidoError, type RunRecord, type RunSummary, toAidoError } from "@aido/sdk/protocol";
import { ActiveRuns } from "./active-runs.ts";
import { prepareAndStart, prepareRun } from "./prepare-run.ts";
import { readRunOutput } from "./read-run-output.ts";
import { discardUnprepared, recoverRun } from "./recover-runs.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunFinder } from "./run-finder.ts";
import { RunJournal } from "./run-journal.ts";
import { PREPARING, RUN_ACTIVE, RUN_LABEL } from "./run-labels.ts";
import { readRunLogs } from "./run-logs.ts";
import { startRun } from "./start-run.ts";

/** How often another process's run is looked at. */
const WATCH_MS = 200;

/** Runs in this process. Several processes may share the data directory: each run has one owner among them. */
export class RunService implements Runs {
  readonly #deps: RunDeps;
  readonly #journal: RunJournal;
  readonly #finder: RunFinder;
  readonly #active: ActiveRuns;

  constructor(deps: RunDeps) {
    this.#deps = deps;
    this.#journal = new RunJournal(deps);
    this.#finder = new RunFinder(deps);
    this.#active = new ActiveRuns(deps, this.#journal);
  }

  async up(request: UpRequest, options: RunOptions = {}): Promise<RunRecord> {
    const { start } = request;
    if (start === undefined) return await prepareRun(this.#deps, this.#journal, request, options);
    const parts = { journal: this.#journal, active: this.#active };
    return await prepareAndStart(this.#deps, parts, { ...request, start }, options);
  }

  async start(request: StartRun, options: RunOptions = {}): Promise<RunRecord> {
    const found = await this.#finder.findForTask(request.sandbox);
    const { id } = found.sandbox;
    if (found.row.status === "running") await this.#recover(id);
    return await startRun(this.#deps, { journal: this.#journal, active: this.#active }, id, request, options);
  }

  async get(sandbox?: string): Promise<RunRecord> {
    const { row } = await this.#finder.find(sandbox);
    if (row.status === "running") await this.#recover(row.sandboxId);
    return await this.#journal.record(row.sandboxId);
  }

  async wait(sandbox?: string, signal?: AbortSignal): Promise<RunSummary> {
    const { sandbox: found } = await this.#finder.find(sandbox);
    for (;;) {
      signal?.throwIfAborted();
      const mine = this.#active.done(found.id);
      if (mine !== undefined) return await abortable(mine, signal);
      const row = await this.#journal.row(found.id);
      if (row === undefined) throw gone(found.id);
      if (row.status === "pending") throw notStarted(found.id);
      if (row.status !== "running") return await this.#ended(found.id);
      if (!(await this.#active.adopt(found.id))) await this.#deps.clock.sleep(WATCH_MS, signal);
    }
  }

  async summary(sandbox?: string): Promise<RunSummary | undefined> {
    const { row } = await this.#finder.find(sandbox);
    if (row.status === "running") await this.#recover(row.sandboxId);
    const now = await this.#journal.row(row.sandboxId);
    if (now === undefined || now.status === "running" || now.status === "pending") return undefined;
    return await this.#journal.summary(row.sandboxId);
  }

  async *logs(request: RunLogs = {}, signal?: AbortSignal): AsyncIterable<RunOutput> {
    const { row } = await this.#finder.find(request.sandbox);
    if (row.status === "running") await this.#recover(row.sandboxId);
    // Whoever follows an abandoned run reads its output on, so that it does not stand still for want of a reader.
    if (request.follow === true) await this.#active.adopt(row.sandboxId);
    yield* readRunLogs(this.#deps, this.#journal, {
      sandboxId: row.sandboxId,
      follow: request.follow === true,
      from: request.from,
      signal,
    });
    // A run that this process sees to its end has ended when its outputs are captured, not with its last byte.
    if (request.follow === true) await this.#active.done(row.sandboxId)?.catch(() => undefined);
  }

  async *output(path: string, sandbox?: string, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    const { row } = await this.#finder.find(sandbox);
    const summary = await this.summary(row.sandboxId);
    yield* readRunOutput(this.#journal.layout(row.sandboxId), { path, summary, signal });
  }

  async cancel(sandbox?: string): Promise<void> {
    const { row } = await this.#finder.find(sandbox);
    if (row.status !== "running") return;
    await this.#active.adopt(row.sandboxId);
    await this.#active.cancel(row.sandboxId);
  }

  /**
   * Finishes what processes that are gone left behind. With `adopt` (a server), also takes over runs that still
   * go on, pipelines included; otherwise those run on until someone asks for them or their ttl is over.
   */
  async recover(options: { adopt?: boolean } = {}): Promise<void> {
    const { sandboxes } = this.#deps.store;
    for (const { id } of await sandboxes.list({ labels: RUN_ACTIVE })) {
      await this.#tolerate(id, async () => {
        if (options.adopt !== true || !(await this.#active.adopt(id))) await this.#recover(id);
      });
    }
    for (const sandbox of await sandboxes.list({ labels: { [RUN_LABEL]: PREPARING } })) {
      await this.#tolerate(sandbox.id, () => discardUnprepared(this.#deps, this.#journal, sandbox));
    }
  }

  /** Leaves the runs going; another process finds them without an owner. */
  async close(): Promise<void> {
    await this.#active.close();
  }

  /** One run that cannot be recovered now is no reason to leave the others. */
  async #tolerate(sandboxId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      this.#deps.logger.warn(
        { event: "run.recover", sandboxId, code, message },
        "A run could not be recovered",
      );
    }
  }

  async #recover(sandboxId: string): Promise<void> {
    if (this.#active.done(sandboxId) !== undefined) return;
    await recoverRun(this.#deps, this.#journal, sandboxId);
  }

  async #ended(sandboxId: string): Promise<RunSummary> {
    const summary = await this.#journal.summary(sandboxId);
    if (summary !== undefined) return summary;
    throw new AidoError("RESOURCE_NOT_FOUND", `The run of ${sandboxId} left no summary`, {
      hint: `\`aido evidence ${sandboxId}\` shows what happened.`,
      details: { sandboxId },
    });
  }
}

async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function gone(sandboxId: string): AidoError {
  return new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} was destroyed`, {
    details: { sandboxId },
  });
}

function notStarted(sandboxId: string): AidoError {
  return new AidoError("EXECUTION_CONFLICT", `Nothing was run in sandbox ${sandboxId} yet`, {
    hint: `Run a task with \`aido run task.py --sandbox ${sandboxId}\`.`,
    details: { sandboxId },
  });
}
