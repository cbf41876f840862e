import type { JobId, JobInfo, JobName, JobRequest, JobResult } from "./protocol/index.ts";

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
