import { randomUUID } from "node:crypto";
import {
  type TaskResult,
  toAidoError,
  type WorkflowExecution,
  type WorkflowStep,
  type WorkflowStepResult,
} from "@aido/sdk/protocol";
import type { Logger } from "../logger.ts";
import { tokenCounts } from "../metrics/token-counts.ts";
import type { Presence } from "../process-presence.ts";
import type { Store } from "../store/store.ts";
import { backoffMs, type ReadCron } from "./cron-schedule.ts";
import { runSteps, type StepDeps, taskOf } from "./run-steps.ts";
import { STOPPED } from "./workflow-errors.ts";
import type { WorkflowSandboxes } from "./workflow-sandboxes.ts";
import type { WorkflowPlan, WorkflowRecord, WorkflowRunEnd, WorkflowRunRecord } from "./workflow-store.ts";

export interface WorkflowTask {
  sidecarUrl: string;
  sidecarToken: string;
  steps: readonly WorkflowStep[];
}

export interface WorkflowRunsDeps extends StepDeps {
  readonly store: Pick<Store, "workflows" | "evidence">;
  readonly presence: Presence;
  readonly logger: Logger;
  readonly sandboxes: WorkflowSandboxes;
  readonly readCron: ReadCron;
  /** Writes down what was said of sandboxes so far. */
  readonly flushEvidence: () => Promise<void>;
}

interface Running {
  readonly stop: AbortController;
  ended: Promise<WorkflowExecution> | undefined;
}

type Outcome = Pick<WorkflowRunEnd, "state" | "error"> & {
  steps?: readonly WorkflowStepResult[];
  task?: TaskResult | undefined;
  sandboxId?: string | undefined;
};

/** How often a run looks whether its workflow was cancelled by another process. */
const LOOK_EVERY_MS = 1_000;

/** The runs of this process. The store sees to it that a workflow has one at a time among all processes. */
export class WorkflowRuns {
  readonly #deps: WorkflowRunsDeps;
  readonly #running = new Map<string, Running>();

  constructor(deps: WorkflowRunsDeps) {
    this.#deps = deps;
  }

  /** Undefined, and nothing is done, when another run goes on or the workflow is planned otherwise meanwhile. */
  async begin(
    workflow: WorkflowRecord,
    run: WorkflowRunRecord,
    plan: WorkflowPlan | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ ended: Promise<WorkflowExecution> } | undefined> {
    const running: Running = { stop: new AbortController(), ended: undefined };
    this.#running.set(run.id, running);
    let isBegun = false;
    try {
      await this.#deps.presence.appear();
      isBegun = await this.#deps.store.workflows.addRun(run, plan);
    } finally {
      if (!isBegun) this.#running.delete(run.id);
    }
    if (!isBegun) return undefined;
    const ended = this.#run(workflow, run, running.stop, signal).finally(() => this.#running.delete(run.id));
    ended.catch(() => undefined);
    running.ended = ended;
    return { ended };
  }

  /** Ends a run of this process and waits for it; one of another process sees for itself. */
  async stop(runId: string): Promise<void> {
    const running = this.#running.get(runId);
    running?.stop.abort();
    await running?.ended?.catch(() => undefined);
  }

  /** Whether it is one of this process that has ended, and could not be written down as such. */
  isForgotten({ id, holder }: WorkflowRunRecord): boolean {
    return holder === this.#deps.presence.self && !this.#running.has(id);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.stop(id)));
  }

  /** One that has failed by schedule is left alone for a while, longer each time. */
  async end(
    workflow: WorkflowRecord,
    run: WorkflowRunRecord,
    { state, error, steps = [], task, sandboxId }: Outcome,
  ): Promise<void> {
    const { store, clock } = this.#deps;
    const endedAt = clock.now();
    const hasFailed = state === "failed" || state === "lost";
    const isCounted = run.trigger === "cron" && (hasFailed || state === "done");
    const failures = hasFailed ? workflow.failures + 1 : 0;
    await store.workflows.endRun(run.id, {
      state,
      error,
      steps,
      task,
      endedAt,
      evidence: await this.#evidence(sandboxId ?? run.sandboxId),
      failures: isCounted ? failures : undefined,
      notBefore: isCounted && hasFailed ? await this.#after(workflow, endedAt, failures) : undefined,
      counts: task === undefined ? {} : tokenCounts(task),
    });
  }

  async #run(
    workflow: WorkflowRecord,
    run: WorkflowRunRecord,
    stop: AbortController,
    asked: AbortSignal | undefined,
  ): Promise<WorkflowExecution> {
    const { store, sandboxes } = this.#deps;
    const done = new AbortController();
    const watching = this.#watch(workflow.id, stop, done.signal);
    const signal = asked === undefined ? stop.signal : AbortSignal.any([stop.signal, asked]);
    const steps: WorkflowStepResult[] = [];
    let sandboxId: string | undefined;
    const finish = async (state: Outcome["state"], error: Outcome["error"]) => {
      const task = steps.length === 0 ? undefined : taskOf(steps);
      done.abort();
      await watching;
      await this.#deps.flushEvidence();
      await this.end(workflow, run, { state, error, steps, task, sandboxId });
    };
    try {
      await sandboxes.use(workflow, run.id, signal, async (id) => {
        sandboxId = id;
        await store.workflows.setRunSandbox(run.id, id);
        await runSteps(this.#deps, id, workflow.steps, { signal, onStep: (step) => steps.push(step) });
      });
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      if (signal.aborted) await finish("cancelled", STOPPED);
      else await finish("failed", { code, message });
      throw thrown;
    }
    const task = taskOf(steps);
    await finish(task.success ? "done" : "failed", undefined);
    return {
      workflowId: workflow.id,
      name: workflow.name,
      status: task.success ? "completed" : "failed",
      executedAt: run.startedAt.toISOString(),
      sandboxConfigJson: workflow.sandboxConfigJson,
      task,
      runId: run.id,
      sandboxId: sandboxId ?? "",
      steps,
    };
  }

  async #watch(workflowId: number, stop: AbortController, done: AbortSignal): Promise<void> {
    const { clock, store } = this.#deps;
    for (;;) {
      await clock.sleep(LOOK_EVERY_MS, done).catch(() => undefined);
      if (done.aborted) return;
      const workflow = await store.workflows.get(workflowId).catch(() => undefined);
      if (workflow !== undefined && !workflow.active) stop.abort();
    }
  }

  async #after({ trigger }: WorkflowRecord, now: Date, failures: number): Promise<Date | undefined> {
    if (trigger.type !== "cron") return undefined;
    const earliest = new Date(now.getTime() + backoffMs(failures));
    try {
      return (await this.#deps.readCron(trigger.cron, trigger.timezone)).next(earliest) ?? earliest;
    } catch {
      return earliest;
    }
  }

  async #evidence(sandboxId: string | undefined) {
    const head = sandboxId === undefined ? undefined : await this.#deps.store.evidence.get(sandboxId);
    return head && { entries: head.seq, hash: head.hash };
  }
}

export function newRun(
  { presence, clock }: Pick<WorkflowRunsDeps, "presence" | "clock">,
  { id, nextRunAt }: Pick<WorkflowRecord, "id" | "nextRunAt">,
  trigger: "manual" | "cron",
): WorkflowRunRecord {
  return {
    id: `run-${randomUUID()}`,
    workflowId: id,
    trigger,
    state: "running",
    holder: presence.self,
    scheduledFor: trigger === "cron" ? nextRunAt : undefined,
    startedAt: clock.now(),
    endedAt: undefined,
    sandboxId: undefined,
    steps: [],
    task: undefined,
    error: undefined,
    evidence: undefined,
  };
}
