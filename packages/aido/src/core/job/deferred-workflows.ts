import type { ListWorkflows, Workflows } from "@aido/sdk";
import type { WorkflowCreateRequest, WorkflowInfo, WorkflowRunInfo } from "@aido/sdk/protocol";
import type { BatchCaller } from "../batch/batch-service.ts";
import type { OpenJobs } from "./deferred-jobs.ts";

const RUNS_SHOWN = 20;

/** Workflows, loaded when the first one is asked for. What changes them is a job. */
export class DeferredWorkflows implements Workflows {
  readonly #parts: () => Promise<OpenJobs>;

  constructor(parts: () => Promise<OpenJobs>) {
    this.#parts = parts;
  }

  async create(request: WorkflowCreateRequest) {
    return (await this.#parts()).jobs.run("WORKFLOW_CREATE", request);
  }

  async trigger(workflowId: number, options: { signal?: AbortSignal | undefined } = {}) {
    return (await this.#parts()).jobs.run("WORKFLOW_TRIGGER", { workflowId }, options);
  }

  async cancel(workflowId: number) {
    return (await this.#parts()).jobs.run("WORKFLOW_CANCEL", { workflowId });
  }

  async list(options?: ListWorkflows, caller?: BatchCaller): Promise<readonly WorkflowInfo[]> {
    const { workflows, local } = await this.#parts();
    return workflows.list(caller ?? local, options);
  }

  async get(workflowId: number, caller?: BatchCaller): Promise<WorkflowInfo> {
    const { workflows, local } = await this.#parts();
    return workflows.get(workflowId, caller ?? local);
  }

  async runs(
    workflowId: number,
    { limit = RUNS_SHOWN }: { limit?: number | undefined } = {},
    caller?: BatchCaller,
  ): Promise<readonly WorkflowRunInfo[]> {
    const { workflows, local } = await this.#parts();
    return workflows.runs(workflowId, limit, caller ?? local);
  }

  /** Begins the runs that are due; a server does so by its schedule. */
  async startDue(): Promise<void> {
    await (await this.#parts()).workflows.startDue();
  }
}
