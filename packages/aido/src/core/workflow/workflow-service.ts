import { randomUUID } from "node:crypto";
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
import type { CronSchedule, ReadCron } from "./cron-schedule.ts";
import {
  idTaken,
  isAtWork,
  LOST,
  MISSED,
  OVERLAPPED,
  tooMany,
  unknownWorkflow,
  wasCancelled,
} from "./workflow-errors.ts";
import { WorkflowRuns, type WorkflowRunsDeps, type WorkflowTask } from "./workflow-runs.ts";
import type { WorkflowPlan, WorkflowRecord, WorkflowRunRecord } from "./workflow-store.ts";

export interface WorkflowDeps extends WorkflowRunsDeps {
  readonly readCron: ReadCron;
  /** Reads a `workflow_json` and a `trigger_config`. Raises VALIDATION_ERROR. */
  readonly readTask: (json: string) => WorkflowTask;
  readonly readTrigger: (config: string) => Omit<CronTrigger, "type">;
  /** One that is later than this was missed. */
  readonly missedAfterMs: () => Promise<number>;
}

type Caller = Pick<JobCaller, "owner" | "isOperator">;

const MOST_WORKFLOWS = 10_000;
const LISTED = 1000;
/** Runs that a schedule has begun, at once in this process. */
const AT_ONCE = 10;
/** Clocks are set by seconds all the time; only one that was set back by more makes plans worthless. */
const CLOCK_SET_BACK_MS = 10 * 60_000;
const RETRY_MS = 60 * 60_000;

/** Keeps workflows, and runs them when asked for or when it is time. */
export class WorkflowService {
  readonly #deps: WorkflowDeps;
  readonly #runs: WorkflowRuns;
  readonly #workers = new Set<Promise<void>>();
  #isClosing = false;

  constructor(deps: WorkflowDeps) {
    this.#deps = deps;
    this.#runs = new WorkflowRuns(deps);
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
  async list(caller: Caller): Promise<readonly WorkflowInfo[]> {
    const owner = caller.isOperator ? undefined : caller.owner;
    return (await this.#deps.store.workflows.list({ owner, limit: LISTED })).map(toInfo);
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
    const execution = await this.#runs.begin(workflow, this.#newRun(workflow, "manual"), undefined, signal);
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
    const executed: WorkflowTickResult["executed"][number][] = [];
    await Promise.all(await this.#start(signal, (result) => executed.push(result)));
    return { executed, count: executed.length };
  }

  /** Begins what is due: a long run does not hold up the next look. */
  async startDue(): Promise<void> {
    void (await this.#start(undefined, () => undefined));
  }

  /** Says of runs whose process has died that they are lost, and removes the sandboxes made for them. */
  async recover(): Promise<void> {
    const { store, processes, sandboxes } = this.#deps;
    for (const run of await store.workflows.running()) {
      if (!processes.isDead(run.holder) && !this.#runs.isForgotten(run)) continue;
      await sandboxes.remove(run.id);
      const workflow = await store.workflows.get(run.workflowId);
      if (workflow !== undefined) await this.#runs.end(workflow, run, { state: "lost", error: LOST });
    }
  }

  /** Ends what runs here, and writes down how far it came. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#runs.close();
    await Promise.allSettled(this.#workers);
  }

  async #start(
    signal: AbortSignal | undefined,
    onResult: (result: WorkflowTickResult["executed"][number]) => void,
  ): Promise<Promise<void>[]> {
    await this.recover();
    const now = this.#deps.clock.now();
    const [first] = await this.#due(now);
    if (first === undefined) return [];
    return Array.from({ length: Math.max(0, AT_ONCE - this.#workers.size) }, () => {
      const worker: Promise<void> = this.#work(now, signal, onResult)
        .catch((thrown: unknown) => this.#warn(0, thrown))
        .finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
      return worker;
    });
  }

  /** What is due at `now` is planned later than that before it runs, so this ends. */
  async #work(
    now: Date,
    signal: AbortSignal | undefined,
    onResult: (result: WorkflowTickResult["executed"][number]) => void,
  ): Promise<void> {
    while (!this.#isClosing && signal?.aborted !== true) {
      const [workflow] = await this.#due(now);
      if (workflow === undefined) return;
      const { id } = workflow;
      try {
        const execution = await this.#turn(workflow, now, signal);
        if (execution !== undefined) onResult(execution);
      } catch (thrown) {
        this.#warn(id, thrown);
        onResult({ workflowId: id, status: "error", error: toAidoError(thrown).message });
      }
    }
  }

  #due(now: Date): Promise<readonly WorkflowRecord[]> {
    const plannedAfter = new Date(now.getTime() + CLOCK_SET_BACK_MS);
    return this.#deps.store.workflows.due({ now, plannedAfter, limit: 1 });
  }

  async #turn(
    workflow: WorkflowRecord,
    now: Date,
    signal: AbortSignal | undefined,
  ): Promise<WorkflowExecution | undefined> {
    const { store, missedAfterMs } = this.#deps;
    const { id, trigger, nextRunAt, runId } = workflow;
    const plan = await this.#plan(workflow);
    if (trigger.type !== "cron" || nextRunAt === undefined || nextRunAt > now) {
      await store.workflows.plan(id, plan);
      return undefined;
    }
    const run = this.#newRun(workflow, "cron");
    const isMissed =
      trigger.missed === "skip" && now.getTime() - nextRunAt.getTime() > (await missedAfterMs());
    if (isMissed || runId !== undefined) {
      const skipped = { state: "skipped", endedAt: run.startedAt } as const;
      await store.workflows.addRun({ ...run, ...skipped, error: isMissed ? MISSED : OVERLAPPED }, plan);
      return undefined;
    }
    return await (await this.#runs.begin(workflow, run, plan, signal))?.ended;
  }

  /** A schedule that cannot be worked out any more, as with a time zone that is gone, is looked at again later. */
  async #plan(workflow: WorkflowRecord): Promise<WorkflowPlan> {
    const plannedAt = this.#deps.clock.now();
    const { trigger, nextRunAt: from } = workflow;
    let nextRunAt: Date | undefined;
    if (trigger.type === "cron") {
      try {
        nextRunAt = (await this.#schedule(trigger)).next(plannedAt);
      } catch (thrown) {
        this.#warn(workflow.id, thrown);
        nextRunAt = new Date(plannedAt.getTime() + RETRY_MS);
      }
    }
    return { from, nextRunAt, plannedAt };
  }

  #schedule({ cron, timezone }: CronTrigger): Promise<CronSchedule> {
    return this.#deps.readCron(cron, timezone);
  }

  async #firstTime(trigger: CronTrigger, now: Date): Promise<Date> {
    const first = (await this.#schedule(trigger)).next(now);
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

  #newRun({ id, nextRunAt }: WorkflowRecord, trigger: "manual" | "cron"): WorkflowRunRecord {
    return {
      id: `run-${randomUUID()}`,
      workflowId: id,
      trigger,
      state: "running",
      holder: this.#deps.processes.self,
      scheduledFor: trigger === "cron" ? nextRunAt : undefined,
      startedAt: this.#deps.clock.now(),
      endedAt: undefined,
      sandboxId: undefined,
      steps: [],
      task: undefined,
      error: undefined,
      evidence: undefined,
    };
  }

  async #find(id: number, caller: Caller): Promise<WorkflowRecord> {
    const record = await this.#deps.store.workflows.get(id);
    if (record === undefined || !(caller.isOperator || record.owner === caller.owner))
      throw unknownWorkflow(id);
    return record;
  }

  #warn(workflowId: number, thrown: unknown): void {
    const { code, message } = toAidoError(thrown);
    this.#deps.logger.warn({ event: "workflow.run", workflowId, code, message }, "workflow did not run");
  }
}

function toInfo(record: WorkflowRecord): WorkflowInfo {
  const { owner: _, isOperator: __, tokenHash: ___, plannedAt: ____, ...info } = record;
  return info;
}
