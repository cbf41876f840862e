import type { BatchInfo, JobId, JobInfo, JobName, JobRequest, JobResult } from "./protocol/index.ts";

/** Typed requests with typed results, by number or name: one way in for HTTP, the command line and chains. */
export interface Jobs {
  list(): Promise<readonly JobInfo[]>;
  /** Resolves when the job is done. */
  run<Job extends JobName | JobId>(
    job: Job,
    request: JobRequest<Job>,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<JobResult<Job>>;
}

/** Jobs that do the same in many sandboxes. They are begun and collected by jobs, and belong to no connection. */
export interface Batches {
  /** Newest first. */
  list(): Promise<readonly BatchInfo[]>;
  get(batchId: string): Promise<BatchInfo>;
  /** Begins no further part and ends those that run; what has ended can be collected. */
  cancel(batchId: string): Promise<BatchInfo>;
}
