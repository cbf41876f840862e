import type {
  WorkflowCanceled,
  WorkflowCreated,
  WorkflowCreateRequest,
  WorkflowExecution,
  WorkflowInfo,
  WorkflowRunInfo,
} from "./protocol/index.ts";

export interface ListWorkflows {
  /** Without those that were cancelled. */
  activeOnly?: boolean | undefined;
  /** 1000 when absent, which is the most. */
  limit?: number | undefined;
  /** Only those with a smaller id: the last of the page before. */
  before?: number | undefined;
}

/** Tasks that are kept, and run when asked for or by a schedule. */
export interface Workflows {
  create(request: WorkflowCreateRequest): Promise<WorkflowCreated>;
  /** Newest first, a page at a time. */
  list(options?: ListWorkflows): Promise<readonly WorkflowInfo[]>;
  get(workflowId: number): Promise<WorkflowInfo>;
  /** Runs it now; resolves when it has ended. An abort ends the run. */
  trigger(workflowId: number, options?: { signal?: AbortSignal | undefined }): Promise<WorkflowExecution>;
  /** Runs it no more, and ends the run that goes on. */
  cancel(workflowId: number): Promise<WorkflowCanceled>;
  /** Newest first. */
  runs(workflowId: number, options?: { limit?: number | undefined }): Promise<readonly WorkflowRunInfo[]>;
}
