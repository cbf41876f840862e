import { toAidoError, type WorkflowExecution, type WorkflowTickResult } from "@aido/sdk/protocol";
import { MISSED, OVERLAPPED } from "./workflow-errors.ts";
import { newRun, type WorkflowRuns, type WorkflowRunsDeps } from "./workflow-runs.ts";
import type { WorkflowPlan, WorkflowRecord } from "./workflow-store.ts";

export interface WorkflowTurnsDeps extends WorkflowRunsDeps {
  /** One that is later than this was missed. */
  readonly missedAfterMs: () => Promise<number>;
}

/** What became of one that was due. */
export type Turned = WorkflowTickResult["executed"][number];

/** Runs that a schedule has begun, at once in this process. */
const AT_ONCE = 10;
/** Clocks are set by seconds all the time; only one that was set back by more makes plans worthless. */
const CLOCK_SET_BACK_MS = 10 * 60_000;
const RETRY_MS = 60 * 60_000;

/** Gives each workflow whose time has come its turn. */
export class WorkflowTurns {
  readonly #deps: WorkflowTurnsDeps;
  readonly #runs: WorkflowRuns;
  readonly #workers = new Set<Promise<void>>();
  #isClosing = false;

  constructor(deps: WorkflowTurnsDeps, runs: WorkflowRuns) {
    this.#deps = deps;
    this.#runs = runs;
  }

  /** Resolves when what is due is being begun, with what to wait for until it has ended. */
  async start(signal: AbortSignal | undefined, onResult: (result: Turned) => void): Promise<Promise<void>[]> {
    const now = this.#deps.clock.now();
    const [first] = await this.#due(now);
    if (first === undefined) return [];
    return Array.from({ length: Math.max(0, AT_ONCE - this.#workers.size) }, () => {
      const worker: Promise<void> = this.#work(now, signal, onResult)
        .catch((thrown: unknown) => this.#warn(0, thrown))
        .finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
      return worker;
    });
  }

  /** What is due at `now` is planned later than that before it runs, so this ends. */
  async #work(now: Date, signal: AbortSignal | undefined, onResult: (result: Turned) => void): Promise<void> {
    while (!this.#isClosing && signal?.aborted !== true) {
      const [workflow] = await this.#due(now);
      if (workflow === undefined) return;
      const { id } = workflow;
      // What cannot be begun would be due for ever: it is left to the next tick.
      const begun = await this.#turn(workflow, now, signal);
      try {
        const execution = await begun?.ended;
        if (execution !== undefined) onResult(execution);
      } catch (thrown) {
        this.#warn(id, thrown);
        onResult({ workflowId: id, status: "error", error: toAidoError(thrown).message });
      }
    }
  }

  #due(now: Date): Promise<readonly WorkflowRecord[]> {
    const plannedAfter = new Date(now.getTime() + CLOCK_SET_BACK_MS);
    return this.#deps.store.workflows.due({ now, plannedAfter, limit: 1 });
  }

  async #turn(
    workflow: WorkflowRecord,
    now: Date,
    signal: AbortSignal | undefined,
  ): Promise<{ ended: Promise<WorkflowExecution> } | undefined> {
    const { store, missedAfterMs } = this.#deps;
    const { id, trigger, nextRunAt, runId } = workflow;
    const plan = await this.#plan(workflow, now);
    if (trigger.type !== "cron" || nextRunAt === undefined || nextRunAt > now) {
      await store.workflows.plan(id, plan);
      return undefined;
    }
    const run = newRun(this.#deps, workflow, "cron");
    const isMissed =
      trigger.missed === "skip" && now.getTime() - nextRunAt.getTime() > (await missedAfterMs());
    if (isMissed || runId !== undefined) {
      const skipped = { state: "skipped", endedAt: run.startedAt } as const;
      await store.workflows.addRun({ ...run, ...skipped, error: isMissed ? MISSED : OVERLAPPED }, plan);
      return undefined;
    }
    return await this.#runs.begin(workflow, run, plan, signal);
  }

  /** A schedule that cannot be worked out any more, as with a time zone that is gone, is looked at again later. */
  async #plan(workflow: WorkflowRecord, now: Date): Promise<WorkflowPlan> {
    // Not before the tick, though the clock be set back meanwhile: it would be due again at once.
    const plannedAt = new Date(Math.max(now.getTime(), this.#deps.clock.now().getTime()));
    const { trigger, nextRunAt: from } = workflow;
    let nextRunAt: Date | undefined;
    if (trigger.type === "cron") {
      try {
        nextRunAt = (await this.#deps.readCron(trigger.cron, trigger.timezone)).next(plannedAt);
      } catch (thrown) {
        this.#warn(workflow.id, thrown);
        nextRunAt = new Date(plannedAt.getTime() + RETRY_MS);
      }
    }
    return { from, nextRunAt, plannedAt };
  }

  #warn(workflowId: number, thrown: unknown): void {
    const { code, message } = toAidoError(thrown);
    this.#deps.logger.warn({ event: "workflow.run", workflowId, code, message }, "workflow did not run");
  }

  /** Begins nothing any more; resolves when what was begun has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled(this.#workers);
  }
}
