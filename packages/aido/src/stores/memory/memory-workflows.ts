import {
  KEPT_RUNS,
  type NewWorkflow,
  type WorkflowPlan,
  type WorkflowQuery,
  type WorkflowRecord,
  type WorkflowRunEnd,
  type WorkflowRunRecord,
  type WorkflowStore,
} from "../../core/workflow/workflow-store.ts";
import type { MemoryCounters } from "./memory-counters.ts";

export class MemoryWorkflows implements WorkflowStore {
  readonly #workflows = new Map<number, WorkflowRecord>();
  #runs: WorkflowRunRecord[] = [];
  #last = 0;
  readonly #counters: MemoryCounters;

  constructor(counters: MemoryCounters) {
    this.#counters = counters;
  }

  async insert(workflow: NewWorkflow): Promise<number | undefined> {
    const id = workflow.id ?? this.#last + 1;
    if (this.#workflows.has(id)) return undefined;
    this.#last = Math.max(this.#last, id);
    this.#workflows.set(id, structuredClone({ ...workflow, id }));
    return id;
  }

  async get(id: number): Promise<WorkflowRecord | undefined> {
    return structuredClone(this.#workflows.get(id));
  }

  async list({ owner, activeOnly = false, before = Number.MAX_SAFE_INTEGER, limit }: WorkflowQuery) {
    const own = [...this.#workflows.values()].filter(
      (one) => (owner === undefined || one.owner === owner) && (one.active || !activeOnly) && one.id < before,
    );
    return structuredClone(own.sort((a, b) => b.id - a.id).slice(0, limit));
  }

  async countActive(): Promise<number> {
    return [...this.#workflows.values()].filter(({ active }) => active).length;
  }

  async due({ now, plannedAfter, limit }: { now: Date; plannedAfter: Date; limit: number }) {
    const due = [...this.#workflows.values()].filter(
      ({ active, nextRunAt, plannedAt, runId, trigger }) =>
        active &&
        nextRunAt !== undefined &&
        ((nextRunAt <= now &&
          (runId === undefined || (trigger.type === "cron" && trigger.overlap === "skip"))) ||
          plannedAt > plannedAfter),
    );
    due.sort((a, b) => Number(a.nextRunAt) - Number(b.nextRunAt) || a.id - b.id);
    return structuredClone(due.slice(0, limit));
  }

  async plan(id: number, plan: WorkflowPlan): Promise<boolean> {
    const workflow = this.#workflows.get(id);
    if (workflow === undefined || !isAsPlanned(workflow, plan)) return false;
    workflow.nextRunAt = plan.nextRunAt;
    workflow.plannedAt = plan.plannedAt;
    return true;
  }

  async addRun(run: WorkflowRunRecord, plan: WorkflowPlan | undefined): Promise<boolean> {
    const workflow = this.#workflows.get(run.workflowId);
    if (workflow === undefined || !workflow.active) return false;
    if (run.state === "running" && workflow.runId !== undefined) return false;
    if (plan !== undefined && !(await this.plan(run.workflowId, plan))) return false;
    if (run.state === "running") Object.assign(workflow, { runId: run.id, lastRunAt: run.startedAt });
    this.#runs.unshift(structuredClone(run));
    const kept = this.#runs.filter(({ workflowId }) => workflowId === run.workflowId).slice(0, KEPT_RUNS);
    this.#runs = this.#runs.filter(
      (one) => one.workflowId !== run.workflowId || one.state === "running" || kept.includes(one),
    );
    return true;
  }

  async setRunSandbox(runId: string, sandboxId: string): Promise<void> {
    const run = this.#runs.find(({ id }) => id === runId);
    if (run !== undefined) run.sandboxId = sandboxId;
  }

  async endRun(runId: string, { failures, notBefore, counts, ...end }: WorkflowRunEnd): Promise<boolean> {
    const run = this.#runs.find(({ id }) => id === runId);
    if (run?.state !== "running") return false;
    Object.assign(run, structuredClone(end));
    const workflow = this.#workflows.get(run.workflowId);
    if (workflow !== undefined) {
      workflow.runId = undefined;
      workflow.failures = failures ?? workflow.failures;
      const { nextRunAt } = workflow;
      if (notBefore !== undefined && nextRunAt !== undefined && nextRunAt < notBefore)
        workflow.nextRunAt = notBefore;
    }
    this.#counters.addNow(counts);
    return true;
  }

  async runs(workflowId: number, limit: number): Promise<readonly WorkflowRunRecord[]> {
    return structuredClone(this.#runs.filter((run) => run.workflowId === workflowId).slice(0, limit));
  }

  async running(): Promise<readonly WorkflowRunRecord[]> {
    return structuredClone(this.#runs.filter(({ state }) => state === "running").reverse());
  }

  async cancel(id: number, now: Date): Promise<boolean> {
    const workflow = this.#workflows.get(id);
    if (workflow === undefined || !workflow.active) return false;
    Object.assign(workflow, { active: false, nextRunAt: undefined, updatedAt: now });
    return true;
  }
}

function isAsPlanned({ active, nextRunAt }: WorkflowRecord, { from }: WorkflowPlan): boolean {
  return active && nextRunAt?.getTime() === from?.getTime();
}
