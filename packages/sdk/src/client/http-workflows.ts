import type { WorkflowCreateRequest, WorkflowInfo, WorkflowRunInfo } from "../protocol/index.ts";
import type { WorkflowReply, WorkflowRunReply } from "../schemas/index.ts";
import type { ListWorkflows, Workflows } from "../workflows.ts";
import type { HttpJobs } from "./http-jobs.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/workflows";

/** Jobs make, run and cancel workflows; only what is read has paths of its own. */
export class HttpWorkflows implements Workflows {
  readonly #transport: Transport;
  readonly #jobs: HttpJobs;

  constructor(transport: Transport, jobs: HttpJobs) {
    this.#transport = transport;
    this.#jobs = jobs;
  }

  create(request: WorkflowCreateRequest) {
    return this.#jobs.run("WORKFLOW_CREATE", request);
  }

  async list(options: ListWorkflows = {}): Promise<readonly WorkflowInfo[]> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options)) {
      if (value !== undefined) query.set(name, String(value));
    }
    const path = query.size === 0 ? PATH : `${PATH}?${query}`;
    const reply = await this.#transport.json<{ workflows: WorkflowReply[] }>(path, { repeatable: true });
    return reply.workflows.map(toInfo);
  }

  async get(workflowId: number): Promise<WorkflowInfo> {
    return toInfo(await this.#transport.json<WorkflowReply>(`${PATH}/${workflowId}`, { repeatable: true }));
  }

  /** Waits as long as its steps may take. */
  async trigger(workflowId: number, { signal }: { signal?: AbortSignal | undefined } = {}) {
    const { steps } = await this.get(workflowId);
    const waitMs = steps.reduce((sum, { timeoutMs }) => sum + timeoutMs, 0);
    return await this.#jobs.run("WORKFLOW_TRIGGER", { workflowId }, { signal, waitMs });
  }

  cancel(workflowId: number) {
    return this.#jobs.run("WORKFLOW_CANCEL", { workflowId });
  }

  async runs(
    workflowId: number,
    { limit }: { limit?: number | undefined } = {},
  ): Promise<readonly WorkflowRunInfo[]> {
    const path = `${PATH}/${workflowId}/runs${limit === undefined ? "" : `?limit=${limit}`}`;
    const reply = await this.#transport.json<{ runs: WorkflowRunReply[] }>(path, { repeatable: true });
    return reply.runs.map(toRun);
  }
}

const toDate = (text: string | undefined): Date | undefined =>
  text === undefined ? undefined : new Date(text);

function toInfo(reply: WorkflowReply): WorkflowInfo {
  return {
    ...reply,
    sandboxId: reply.sandboxId,
    runId: reply.runId,
    createdAt: new Date(reply.createdAt),
    updatedAt: new Date(reply.updatedAt),
    lastRunAt: toDate(reply.lastRunAt),
    nextRunAt: toDate(reply.nextRunAt),
  };
}

function toRun(reply: WorkflowRunReply): WorkflowRunInfo {
  return {
    ...reply,
    sandboxId: reply.sandboxId,
    task: reply.task,
    error: reply.error,
    evidence: reply.evidence,
    scheduledFor: toDate(reply.scheduledFor),
    startedAt: new Date(reply.startedAt),
    endedAt: toDate(reply.endedAt),
  };
}
