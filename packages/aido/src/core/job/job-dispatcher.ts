import type { JobCaller } from "./job-caller.ts";

export interface RunJobOptions {
  signal?: AbortSignal | undefined;
  /** Whoever runs this machine when absent. */
  caller?: JobCaller | undefined;
  /** The id of the workflow that WORKFLOW_CREATE makes, where a registry chooses it; one that is taken is refused. */
  workflowId?: number | undefined;
}

/**
 * The one way to run a job for whoever gets its requests from elsewhere: HTTP, the command line, a runner that follows a
 * chain. One request has one result of the job's type, or one error that `toAidoError` reads. The same request again is
 * another job, except where it names what it makes: a batch by its `batchId`, a workflow by `workflowId`.
 */
export interface JobDispatcher {
  /** By number or name; the request is checked here. */
  runAny(job: number | string, request: unknown, options?: RunJobOptions): Promise<object>;
}
