import { randomUUID } from "node:crypto";
import type { Jobs } from "@aido/sdk";
import {
  AidoError,
  findJob,
  JOBS,
  type JobId,
  type JobInfo,
  type JobName,
  type JobRequest,
  type JobResult,
  type TaskResult,
} from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Counts } from "../metrics/counters.ts";
import { tokenCounts } from "../metrics/token-counts.ts";
import type { Presence } from "../process-presence.ts";
import type { Store } from "../store/store.ts";
import type { JobCaller } from "./job-caller.ts";
import type { JobDispatcher, RunJobOptions } from "./job-dispatcher.ts";
import type { JobContext, JobHandlers } from "./job-handler.ts";

export interface JobServiceDeps {
  readonly handlers: JobHandlers;
  /** Checks a request and fills in what it leaves out. Raises VALIDATION_ERROR. */
  readonly parse: (name: JobName, request: unknown) => unknown;
  readonly describe: () => readonly JobInfo[];
  /** Whoever runs a job in this process without saying for whom. */
  readonly local: JobCaller;
  readonly store: Pick<Store, "jobs">;
  readonly clock: Clock;
  readonly presence: Presence;
}

/** Dispatches jobs by number or name, and counts each once. */
export class JobService implements Jobs, JobDispatcher {
  readonly #deps: JobServiceDeps;

  constructor(deps: JobServiceDeps) {
    this.#deps = deps;
  }

  async list(): Promise<readonly JobInfo[]> {
    return this.#deps.describe();
  }

  async run<Job extends JobName | JobId>(
    job: Job,
    request: JobRequest<Job>,
    options: RunJobOptions = {},
  ): Promise<JobResult<Job>> {
    return (await this.runAny(job, request, options)) as JobResult<Job>;
  }

  async runAny(job: number | string, request: unknown, options: RunJobOptions = {}): Promise<object> {
    const { handlers, parse, local } = this.#deps;
    const name = findJob(job);
    if (name === undefined) throw unknownJob(job);
    const context: JobContext = {
      caller: options.caller ?? local,
      signal: options.signal ?? new AbortController().signal,
      workflowId: options.workflowId,
    };
    if (name === "WORKFLOW_TICK" && !context.caller.isInternal) throw onlyInternal();
    const handler = handlers[name] as
      | ((request: unknown, context: JobContext) => Promise<object>)
      | undefined;
    if (handler === undefined) throw unsupported(name);
    const parsed = parse(name, request);
    return await this.#counted(name, () => handler(parsed, context));
  }

  /** Jobs whose process has died were never counted: they have failed. */
  async recover(): Promise<void> {
    const { store, presence } = this.#deps;
    for (const { id, holder } of await store.jobs.list()) {
      if (await presence.isGone(holder)) await store.jobs.end(id, { total_jobs: 1, failed_jobs: 1 });
    }
  }

  async #counted(name: JobName, work: () => Promise<object>): Promise<object> {
    const { store, clock, presence } = this.#deps;
    const id = randomUUID();
    const startedAt = clock.now();
    await presence.appear();
    await store.jobs.begin({ id, job: JOBS[name], holder: presence.self, startedAt });
    let counts: Counts = { failed_jobs: 1 };
    try {
      const result = await work();
      counts = countsOf(result);
      return result;
    } finally {
      const total_duration_ms = Math.max(0, clock.now().getTime() - startedAt.getTime());
      await store.jobs.end(id, { total_jobs: 1, total_duration_ms, ...counts });
    }
  }
}

/** A job whose agent says that it has failed is a failed one. */
function countsOf(result: object): Counts {
  const { success, task } = result as Partial<TaskResult> & { task?: TaskResult };
  // What a workflow's agents used is counted with its run, which may also begin without a job.
  if (task !== undefined) return { failed_jobs: task.success ? 0 : 1 };
  return { failed_jobs: success === false ? 1 : 0, ...tokenCounts(result) };
}

function unknownJob(job: number | string): AidoError {
  return new AidoError("RESOURCE_NOT_FOUND", `There is no job ${JSON.stringify(String(job).slice(0, 64))}`, {
    hint: "`aido job list` and GET /api/jobs show all there are.",
  });
}

function onlyInternal(): AidoError {
  return new AidoError("FORBIDDEN", "WORKFLOW_TICK is run by aido's own scheduler only", {
    hint: "Run one workflow with WORKFLOW_TRIGGER.",
  });
}

function unsupported(name: JobName): AidoError {
  return new AidoError("UNSUPPORTED", `This aido cannot do the job ${name}`, {
    hint: "`aido job list` shows all jobs; a newer aido may do this one.",
    details: { job: name },
  });
}
