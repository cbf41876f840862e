import type { Batches, Jobs } from "@aido/sdk";
import type { BatchInfo, JobId, JobInfo, JobName, JobRequest, JobResult } from "@aido/sdk/protocol";
import type { BatchCaller, BatchService } from "../batch/batch-service.ts";
import type { WorkflowService } from "../workflow/workflow-service.ts";
import { DeferredWorkflows } from "./deferred-workflows.ts";
import type { JobDispatcher, RunJobOptions } from "./job-dispatcher.ts";
import type { JobService } from "./job-service.ts";

export interface OpenJobs {
  jobs: JobService;
  batches: BatchService;
  workflows: WorkflowService;
  /** Whoever asks in this process without saying for whom. */
  local: BatchCaller;
}

/** Jobs and batches, loaded when the first one is asked for: most commands run none. */
export class DeferredJobs implements Jobs, JobDispatcher {
  readonly batches: DeferredBatches;
  readonly workflows: DeferredWorkflows;
  readonly #open: () => Promise<OpenJobs>;
  #opened: Promise<OpenJobs> | undefined;

  constructor(open: () => Promise<OpenJobs>) {
    this.#open = open;
    this.batches = new DeferredBatches(() => this.#parts());
    this.workflows = new DeferredWorkflows(() => this.#parts());
  }

  async list(): Promise<readonly JobInfo[]> {
    return (await this.#parts()).jobs.list();
  }

  async run<Job extends JobName | JobId>(
    job: Job,
    request: JobRequest<Job>,
    options?: RunJobOptions,
  ): Promise<JobResult<Job>> {
    return (await this.#parts()).jobs.run(job, request, options);
  }

  async runAny(job: number | string, request: unknown, options?: RunJobOptions): Promise<object> {
    return (await this.#parts()).jobs.runAny(job, request, options);
  }

  /** Settles what processes that have died were at. */
  async recover(): Promise<void> {
    const { jobs, batches, workflows } = await this.#parts();
    await jobs.recover();
    await batches.recover();
    await workflows.recover();
  }

  /** Ends the batches and workflows that run here. */
  async close(): Promise<void> {
    const parts = await this.#opened;
    await Promise.all([parts?.batches.close(), parts?.workflows.close()]);
  }

  #parts(): Promise<OpenJobs> {
    this.#opened ??= this.#open();
    return this.#opened;
  }
}

export class DeferredBatches implements Batches {
  readonly #parts: () => Promise<OpenJobs>;

  constructor(parts: () => Promise<OpenJobs>) {
    this.#parts = parts;
  }

  async list(caller?: BatchCaller): Promise<readonly BatchInfo[]> {
    const { batches, local } = await this.#parts();
    return batches.list(caller ?? local);
  }

  async get(id: string, caller?: BatchCaller): Promise<BatchInfo> {
    const { batches, local } = await this.#parts();
    return batches.get(id, caller ?? local);
  }

  async cancel(id: string, caller?: BatchCaller): Promise<BatchInfo> {
    const { batches, local } = await this.#parts();
    return batches.cancel(id, caller ?? local);
  }
}
