import type { WorkflowInfo, WorkflowRunInfo } from "@aido/sdk/protocol";
import type { Counts } from "../metrics/counters.ts";

export interface WorkflowRecord extends WorkflowInfo {
  owner: string;
  /** Whether its owner ran this machine when it was made: it may then use every sandbox. */
  isOperator: boolean;
  /** SHA-256 of the token that opened its sandbox when it was made, hex; no run once that token opens it no more. */
  tokenHash: string | undefined;
  /** When `nextRunAt` was worked out; one in the future means that the clock was set back. */
  plannedAt: Date;
}

/** Without an id, one is chosen. */
export type NewWorkflow = Omit<WorkflowRecord, "id"> & { id?: number | undefined };

export interface WorkflowRunRecord extends WorkflowRunInfo {
  /** Names the process that runs it; see core/process-identity.ts. */
  holder: string;
}

/** When a workflow runs next, and what it must still say of that for the change to be made. */
export interface WorkflowPlan {
  from: Date | undefined;
  nextRunAt: Date | undefined;
  plannedAt: Date;
}

export type WorkflowRunEnd = Pick<WorkflowRunRecord, "steps" | "task" | "error" | "evidence"> & {
  state: Exclude<WorkflowRunRecord["state"], "running" | "skipped">;
  endedAt: Date;
  /** Undefined leaves the number as it is. */
  failures: number | undefined;
  /** No scheduled run before then. */
  notBefore: Date | undefined;
  counts: Counts;
};

/** How many runs of each workflow are remembered. */
export const KEPT_RUNS = 100;

export interface WorkflowQuery {
  owner?: string | undefined;
  activeOnly?: boolean | undefined;
  /** Only those with a smaller id. */
  before?: number | undefined;
  limit: number;
}

/** Workflows and their runs. A workflow has one run at a time, whoever asks for it. */
export interface WorkflowStore {
  /** Its id; undefined when that is taken. */
  insert(workflow: NewWorkflow): Promise<number | undefined>;
  get(id: number): Promise<WorkflowRecord | undefined>;
  /** Newest first. Everybody's when no owner is given. */
  list(query: WorkflowQuery): Promise<readonly WorkflowRecord[]>;
  countActive(): Promise<number>;
  /**
   * Active ones whose time has come, longest due first, and those planned after `plannedAfter`. Cost grows with what
   * is due. One that is at work and queues is not due.
   */
  due(query: { now: Date; plannedAfter: Date; limit: number }): Promise<readonly WorkflowRecord[]>;
  /** False when it is no longer active, or planned otherwise meanwhile. */
  plan(id: number, plan: WorkflowPlan): Promise<boolean>;
  /**
   * Writes a run down and plans the next in the same step. False, and nothing is done, when the workflow is no longer
   * active or planned otherwise meanwhile, or when the run is to begin and another goes on.
   */
  addRun(run: WorkflowRunRecord, plan: WorkflowPlan | undefined): Promise<boolean>;
  setRunSandbox(runId: string, sandboxId: string): Promise<void>;
  /** Counts in the same step. Only a running one can end; false otherwise. */
  endRun(runId: string, end: WorkflowRunEnd): Promise<boolean>;
  /** Newest first. */
  runs(workflowId: number, limit: number): Promise<readonly WorkflowRunRecord[]>;
  running(): Promise<readonly WorkflowRunRecord[]>;
  /** False when it is not active. */
  cancel(id: number, now: Date): Promise<boolean>;
}
