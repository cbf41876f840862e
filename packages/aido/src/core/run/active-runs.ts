import { AidoError, type RunSummary, toAidoError } from "@aido/sdk/protocol";
import type { RunRow } from "../store/store.ts";
import { findCurrentTask } from "./current-task.ts";
import { finishRun } from "./finish-run.ts";
import { refuseDestroyed } from "./refuse-destroyed.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunExecutor } from "./run-executor.ts";
import type { RunJournal } from "./run-journal.ts";
import type { RunOutcome } from "./run-outcome.ts";
import { type RunPlan, toPlan } from "./run-plan.ts";

interface ActiveRun {
  executor: RunExecutor;
  done: Promise<RunSummary>;
}

/** The runs that this process sees to their end. */
export class ActiveRuns {
  readonly #deps: RunDeps;
  readonly #journal: RunJournal;
  readonly #runs = new Map<string, ActiveRun>();
  readonly #closing = new AbortController();

  constructor(deps: RunDeps, journal: RunJournal) {
    this.#deps = deps;
    this.#journal = journal;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Resolves when the run is finished; undefined when it is not one of this process. */
  done(sandboxId: string): Promise<RunSummary> | undefined {
    return this.#runs.get(sandboxId)?.done;
  }

  /** The run must be owned by this process; `work` sees its tasks to their end. */
  add(plan: RunPlan, executor: RunExecutor, work: (closing: AbortSignal) => Promise<RunOutcome>): void {
    const done = this.#see(plan, work).finally(() => this.#runs.delete(plan.sandboxId));
    // Whoever waits gets the failure; nobody waiting is no reason to end the process.
    done.catch(() => undefined);
    this.#runs.set(plan.sandboxId, { executor, done });
  }

  /** Takes over a run whose owner is gone. False when there is nothing to take over. */
  async adopt(sandboxId: string): Promise<boolean> {
    if (this.#runs.has(sandboxId)) return true;
    const row = await this.#journal.row(sandboxId);
    if (row?.status !== "running" || this.closing.aborted) return false;
    if (!(await this.#journal.isOurs(sandboxId))) return false;
    const owner = this.#journal.owner(sandboxId);
    if (!(await owner.take())) return false;
    try {
      // It may have ended between the two looks.
      const now = await this.#journal.row(sandboxId);
      if (now?.status === "running") {
        await this.#continue(now);
        return true;
      }
    } catch (thrown) {
      await owner.release();
      throw thrown;
    }
    await owner.release();
    return false;
  }

  async cancel(sandboxId: string): Promise<void> {
    const run = this.#runs.get(sandboxId);
    if (run !== undefined) return await run.executor.cancel();
    const row = await this.#journal.row(sandboxId);
    if (row?.status !== "running") return;
    const plan = toPlan(row, await this.#journal.spec(sandboxId), await this.#journal.record(sandboxId));
    await new RunExecutor(this.#deps, this.#journal, plan).cancel();
  }

  async close(): Promise<void> {
    this.#closing.abort(new AidoError("SHUTTING_DOWN", "aido is ending; the run goes on without it"));
    await Promise.allSettled([...this.#runs.values()].map((run) => run.done));
  }

  async #continue(row: RunRow): Promise<void> {
    const record = await this.#journal.record(row.sandboxId);
    const plan = toPlan(row, await this.#journal.spec(row.sandboxId), record);
    const executor = new RunExecutor(this.#deps, this.#journal, plan);
    await this.#deps.sandboxes.get(row.sandboxId);
    const { index, exec } = await findCurrentTask(this.#deps, plan, record);
    this.add(plan, executor, async (closing) => {
      if (exec === undefined) return await executor.startAndComplete(index, closing);
      await executor.resume(index, closing);
      return await executor.complete(index, closing);
    });
  }

  async #see(plan: RunPlan, work: (closing: AbortSignal) => Promise<RunOutcome>): Promise<RunSummary> {
    const owner = this.#journal.owner(plan.sandboxId);
    const over = new AbortController();
    const beating = owner.beat(over.signal);
    try {
      const outcome = await this.#outcome(plan, work);
      return await finishRun(this.#deps, this.#journal, plan, outcome);
    } catch (thrown) {
      if (this.closing.aborted) throw thrown;
      await refuseDestroyed(this.#deps, plan.sandboxId);
      const fields = { event: "run.finish", sandboxId: plan.sandboxId, err: thrown };
      this.#deps.logger.error(fields, "A run could not be finished");
      throw thrown;
    } finally {
      over.abort();
      await beating;
      await owner.release();
    }
  }

  async #outcome(plan: RunPlan, work: (closing: AbortSignal) => Promise<RunOutcome>): Promise<RunOutcome> {
    try {
      return await work(this.closing);
    } catch (thrown) {
      if (this.closing.aborted) throw thrown;
      await refuseDestroyed(this.#deps, plan.sandboxId);
      const error = toAidoError(thrown).message;
      await this.#deps.evidence.append(plan.sandboxId, "run.error", { error });
      return { status: "failed", exitCode: null, error };
    }
  }
}
