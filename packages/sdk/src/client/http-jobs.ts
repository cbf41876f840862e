import type { Jobs } from "../jobs.ts";
import type { JobId, JobInfo, JobName, JobRequest, JobResult } from "../protocol/index.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/jobs";

export class HttpJobs implements Jobs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(): Promise<readonly JobInfo[]> {
    return (await this.#transport.json<{ jobs: JobInfo[] }>(PATH, { repeatable: true })).jobs;
  }

  async run<Job extends JobName | JobId>(
    job: Job,
    request: JobRequest<Job>,
    options: { signal?: AbortSignal | undefined; waitMs?: number | undefined } = {},
  ): Promise<JobResult<Job>> {
    const { timeoutMs } = request as { timeoutMs?: number };
    return await this.#transport.json(`${PATH}/${encodeURIComponent(job)}`, {
      method: "POST",
      json: request,
      slow: true,
      waitMs: options.waitMs ?? (Number(timeoutMs ?? 0) || 0),
      // A batch with an id is run once, however often it is asked for.
      repeatable: "batchId" in request && String(job) !== "BATCH_COLLECT" && Number(job) !== 23,
      signal: options.signal,
    });
  }
}
