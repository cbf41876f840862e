import type { ListWorkflows } from "@aido/sdk";
import {
  AidoError,
  type CronTrigger,
  type Parsed,
  toAidoError,
  type WorkflowCreateRequest,
  type WorkflowExecution,
  type WorkflowInfo,
  type WorkflowRunInfo,
  type WorkflowTickResult,
  type WorkflowTrigger,
} from "@aido/sdk/protocol";
import type { JobCaller } from "../job/job-caller.ts";
import { idTaken, isAtWork, LOST, tooMany, unknownWorkflow, wasCancelled } from "./workflow-errors.ts";
import { newRun, WorkflowRuns, type WorkflowTask } from "./workflow-runs.ts";
import type { WorkflowRecord } from "./workflow-store.ts";
import { type Turned, WorkflowTurns, type WorkflowTurnsDeps } from "./workflow-turns.ts";

export interface WorkflowDeps extends WorkflowTurnsDeps {
  /** Reads a `workflow_json` and a `trigger_config`. Raises VALIDATION_ERROR. */
  readonly readTask: (json: string) => WorkflowTask;
  readonly readTrigger: (config: string) => Omit<CronTrigger, "type">;
}

type Caller = Pick<JobCaller, "owner" | "isOperator">;

const MOST_WORKFLOWS = 10_000;
const LISTED = 1000;

/** Keeps workflows, and runs them when asked for or when it is time. */
export class WorkflowService {
  readonly #deps: WorkflowDeps;
  readonly #runs: WorkflowRuns;
  readonly #turns: WorkflowTurns;

  constructor(deps: WorkflowDeps) {
    this.#deps = deps;
    this.#runs = new WorkflowRuns(deps);
    this.#turns = new WorkflowTurns(deps, this.#runs);
  }

  /** An id that is given is another's to choose; one that is taken is refused and nothing is written over. */
  async create(
    request: Parsed<WorkflowCreateRequest>,
    caller: JobCaller,
    id?: number,
  ): Promise<WorkflowRecord> {
    const { store, clock, agents, sandboxes } = this.#deps;
    const { sidecarUrl, sidecarToken, steps } = this.#deps.readTask(request.workflowJson);
    if (agents === undefined && steps.some(({ kind }) => kind === "agent")) {
      throw new AidoError("UNSUPPORTED", "This aido has no agents", { hint: "Use steps with a command." });
    }
    const trigger = this.#trigger(request);
    const now = clock.now();
    const nextRunAt = trigger.type === "cron" ? await this.#firstTime(trigger, now) : undefined;
    sandboxes.read(request.sandboxConfigJson);
    const place =
      sidecarUrl.trim() === ""
        ? { sandboxId: undefined, tokenHash: undefined }
        : await sandboxes.existing(caller, sidecarUrl, sidecarToken);
    if ((await store.workflows.countActive()) >= MOST_WORKFLOWS) throw tooMany(MOST_WORKFLOWS);
    const { owner, isOperator } = caller;
    const workflow = {
      name: request.name,
      trigger,
      steps,
      ...place,
      sandboxConfigJson: request.sandboxConfigJson,
      owner,
      isOperator,
      active: true,
      runId: undefined,
      failures: 0,
      createdAt: now,
      updatedAt: now,
      lastRunAt: undefined,
      nextRunAt,
      plannedAt: now,
    };
    const taken = await store.workflows.insert({ ...workflow, id });
    if (taken === undefined) throw idTaken(id ?? 0);
    return { ...workflow, id: taken };
  }

  /** Newest first. */
  async list(caller: Caller, options: ListWorkflows = {}): Promise<readonly WorkflowInfo[]> {
    const owner = caller.isOperator ? undefined : caller.owner;
    const { limit = LISTED } = options;
    return (await this.#deps.store.workflows.list({ ...options, owner, limit })).map(toInfo);
  }

  async get(id: number, caller: Caller): Promise<WorkflowInfo> {
    return toInfo(await this.#find(id, caller));
  }

  /** Newest first. */
  async runs(id: number, limit: number, caller: Caller): Promise<readonly WorkflowRunInfo[]> {
    await this.#find(id, caller);
    await this.recover();
    const runs = await this.#deps.store.workflows.runs(id, limit);
    return runs.map(({ holder: _, ...info }) => info);
  }

  /** Runs it now, besides its schedule. An abort ends the run. */
  async trigger(id: number, caller: Caller, signal: AbortSignal): Promise<WorkflowExecution> {
    await this.recover();
    const workflow = await this.#find(id, caller);
    if (!workflow.active) throw wasCancelled(id);
    const execution = await this.#runs.begin(
      workflow,
      newRun(this.#deps, workflow, "manual"),
      undefined,
      signal,
    );
    if (execution !== undefined) return await execution.ended;
    throw (await this.#find(id, caller)).active ? isAtWork(id) : wasCancelled(id);
  }

  /** No further run; one that goes on is ended. The same again changes nothing. */
  async cancel(id: number, caller: Caller): Promise<void> {
    const { runId } = await this.#find(id, caller);
    await this.#deps.store.workflows.cancel(id, this.#deps.clock.now());
    if (runId !== undefined) await this.#runs.stop(runId);
  }

  /** Runs what is due and waits for it. */
  async tick(signal: AbortSignal): Promise<WorkflowTickResult> {
    await this.recover();
    const executed: Turned[] = [];
    await Promise.all(await this.#turns.start(signal, (result) => executed.push(result)));
    return { executed, count: executed.length };
  }

  /** Begins what is due: a long run does not hold up the next look. */
  async startDue(): Promise<void> {
    await this.recover();
    void (await this.#turns.start(undefined, () => undefined));
  }

  /** Says of runs whose process has died that they are lost, and removes the sandboxes made for them. */
  async recover(): Promise<void> {
    const { store, presence, sandboxes, logger } = this.#deps;
    for (const run of await store.workflows.running()) {
      if (!this.#runs.isForgotten(run) && !(await presence.isGone(run.holder))) continue;
      try {
        await sandboxes.remove(run.id);
        const workflow = await store.workflows.get(run.workflowId);
        if (workflow !== undefined) await this.#runs.end(workflow, run, { state: "lost", error: LOST });
      } catch (thrown) {
        // Tried again at the next tick; whoever only looks at something else is not bothered with it.
        const { code, message } = toAidoError(thrown);
        logger.warn({ event: "workflow.recover", runId: run.id, code, message }, "lost run not settled");
      }
    }
  }

  /** Ends what runs here, and writes down how far it came. */
  async close(): Promise<void> {
    const turns = this.#turns.close();
    await this.#runs.close();
    await turns;
  }

  async #firstTime(trigger: CronTrigger, now: Date): Promise<Date> {
    const first = (await this.#deps.readCron(trigger.cron, trigger.timezone)).next(now);
    if (first !== undefined) return first;
    throw new AidoError("VALIDATION_ERROR", `The time of ${JSON.stringify(trigger.cron)} never comes`, {
      hint: 'Look at the day and the month; "0 30 3 * * *" is every day at 03:30.',
      details: { field: "triggerConfig" },
    });
  }

  #trigger({ triggerType, triggerConfig }: Parsed<WorkflowCreateRequest>): WorkflowTrigger {
    if (triggerType === "cron") return { type: "cron", ...this.#deps.readTrigger(triggerConfig) };
    if (triggerConfig.trim() === "") return { type: "manual" };
    throw new AidoError("VALIDATION_ERROR", "A workflow that is triggered by hand has no trigger_config", {
      hint: "Set trigger_type to cron, or leave trigger_config out.",
      details: { field: "triggerConfig" },
    });
  }

  async #find(id: number, caller: Caller): Promise<WorkflowRecord> {
    const record = await this.#deps.store.workflows.get(id);
    if (record === undefined || !(caller.isOperator || record.owner === caller.owner))
      throw unknownWorkflow(id);
    return record;
  }
}

function toInfo(record: WorkflowRecord): WorkflowInfo {
  const { owner: _, isOperator: __, tokenHash: ___, plannedAt: ____, ...info } = record;
  return info;
}
