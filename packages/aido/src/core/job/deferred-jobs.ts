import type { Jobs } from "@aido/sdk";
import type { JobId, JobInfo, JobName, JobRequest, JobResult } from "@aido/sdk/protocol";
import type { JobService, RunJobOptions } from "./job-service.ts";

/** Jobs, loaded when the first one is asked for: most commands run none. */
export class DeferredJobs implements Jobs {
  readonly #open: () => Promise<JobService>;
  #opened: Promise<JobService> | undefined;

  constructor(open: () => Promise<JobService>) {
    this.#open = open;
  }

  async list(): Promise<readonly JobInfo[]> {
    return (await this.#service()).list();
  }

  async run<Job extends JobName | JobId>(
    job: Job,
    request: JobRequest<Job>,
    options?: RunJobOptions,
  ): Promise<JobResult<Job>> {
    return (await this.#service()).run(job, request, options);
  }

  async runAny(job: number | string, request: unknown, options?: RunJobOptions): Promise<object> {
    return (await this.#service()).runAny(job, request, options);
  }

  /** Counts what processes that have died were at. */
  async recover(): Promise<void> {
    await (await this.#service()).recover();
  }

  #service(): Promise<JobService> {
    this.#opened ??= this.#open();
    return this.#opened;
  }
}
