import type { WorkflowRunState } from "@aido/sdk/protocol";
import {
  KEPT_RUNS,
  type NewWorkflow,
  type WorkflowPlan,
  type WorkflowQuery,
  type WorkflowRecord,
  type WorkflowRunEnd,
  type WorkflowRunRecord,
  type WorkflowStore,
} from "../../core/workflow/workflow-store.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";
import { addCounts } from "./sqlite-counters.ts";

/** What never changes, and is not looked for. */
type Definition = Pick<
  WorkflowRecord,
  "name" | "trigger" | "steps" | "sandboxId" | "sandboxConfigJson" | "isOperator" | "tokenHash"
>;
type Outcome = Pick<WorkflowRunRecord, "steps" | "task" | "error" | "evidence">;

export class SqliteWorkflows implements WorkflowStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async insert(workflow: NewWorkflow): Promise<number | undefined> {
    const { name, trigger, steps, sandboxId, sandboxConfigJson, isOperator, tokenHash } = workflow;
    const definition: Definition = {
      name,
      trigger,
      steps,
      sandboxId,
      sandboxConfigJson,
      isOperator,
      tokenHash,
    };
    const row = this.#db.write(() =>
      this.#db.first(
        `INSERT OR IGNORE INTO workflows (id, owner, definition, active, queues, run_id, failures, next_run_at,
           planned_at, last_run_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
        workflow.id ?? null,
        workflow.owner,
        JSON.stringify(definition),
        workflow.active ? 1 : 0,
        trigger.type === "cron" && trigger.overlap === "queue" ? 1 : 0,
        workflow.runId ?? null,
        workflow.failures,
        toTime(workflow.nextRunAt),
        workflow.plannedAt.getTime(),
        toTime(workflow.lastRunAt),
        workflow.createdAt.getTime(),
        workflow.updatedAt.getTime(),
      ),
    );
    return row === undefined ? undefined : Number(row["id"]);
  }

  async get(id: number): Promise<WorkflowRecord | undefined> {
    const row = this.#db.first("SELECT * FROM workflows WHERE id = ?", id);
    return row === undefined ? undefined : toWorkflow(row);
  }

  async list({ owner, activeOnly = false, before = Number.MAX_SAFE_INTEGER, limit }: WorkflowQuery) {
    const owned = owner === undefined ? "" : "owner = ? AND ";
    const active = activeOnly ? "active = 1 AND " : "";
    const sql = `SELECT * FROM workflows WHERE ${owned}${active}id < ? ORDER BY id DESC LIMIT ?`;
    return this.#db.all(sql, ...(owner === undefined ? [] : [owner]), before, limit).map(toWorkflow);
  }

  async countActive(): Promise<number> {
    return Number(this.#db.first("SELECT count(*) AS n FROM workflows WHERE active = 1")?.["n"]);
  }

  async due({ now, plannedAfter, limit }: { now: Date; plannedAfter: Date; limit: number }) {
    return this.#db
      .all(
        `SELECT * FROM workflows WHERE id IN (
           SELECT id FROM (SELECT id FROM workflows INDEXED BY workflows_due
             WHERE next_run_at IS NOT NULL AND next_run_at <= ? AND (run_id IS NULL OR queues = 0)
             ORDER BY next_run_at, id LIMIT ?)
           UNION SELECT id FROM (SELECT id FROM workflows INDEXED BY workflows_planned
             WHERE next_run_at IS NOT NULL AND planned_at > ? ORDER BY planned_at, id LIMIT ?))
         ORDER BY next_run_at, id LIMIT ?`,
        now.getTime(),
        limit,
        plannedAfter.getTime(),
        limit,
        limit,
      )
      .map(toWorkflow);
  }

  async plan(id: number, plan: WorkflowPlan): Promise<boolean> {
    return this.#plan(id, plan);
  }

  async addRun(run: WorkflowRunRecord, plan: WorkflowPlan | undefined): Promise<boolean> {
    const { id, workflowId, state, startedAt } = run;
    return this.#db.write(() => {
      const workflow = this.#db.first("SELECT active, run_id FROM workflows WHERE id = ?", workflowId);
      if (Number(workflow?.["active"] ?? 0) === 0) return false;
      if (state === "running" && workflow?.["run_id"] !== null) return false;
      if (plan !== undefined && !this.#plan(workflowId, plan)) return false;
      if (state === "running") {
        const sql = "UPDATE workflows SET run_id = ?, last_run_at = ? WHERE id = ?";
        this.#db.run(sql, id, startedAt.getTime(), workflowId);
      }
      this.#db.run(
        `INSERT INTO workflow_runs (id, workflow_id, "trigger", state, holder, sandbox_id, scheduled_for, started_at,
           ended_at, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        workflowId,
        run.trigger,
        state,
        run.holder,
        run.sandboxId ?? null,
        toTime(run.scheduledFor),
        startedAt.getTime(),
        toTime(run.endedAt),
        outcomeOf(run),
      );
      this.#db.run(
        `DELETE FROM workflow_runs WHERE workflow_id = ? AND state <> 'running' AND seq <= (
           SELECT seq FROM workflow_runs WHERE workflow_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
        workflowId,
        workflowId,
        KEPT_RUNS,
      );
      return true;
    });
  }

  async setRunSandbox(runId: string, sandboxId: string): Promise<void> {
    this.#db.run("UPDATE workflow_runs SET sandbox_id = ? WHERE id = ?", sandboxId, runId);
  }

  async endRun(runId: string, end: WorkflowRunEnd): Promise<boolean> {
    const { state, endedAt, failures, notBefore, counts } = end;
    return this.#db.write(() => {
      const sql =
        "UPDATE workflow_runs SET state = ?, ended_at = ?, outcome = ? WHERE id = ? AND state = 'running'";
      if (this.#db.run(sql, state, endedAt.getTime(), outcomeOf(end), runId) === 0) return false;
      const later = toTime(notBefore);
      this.#db.run(
        `UPDATE workflows SET run_id = NULL, failures = coalesce(?, failures),
           next_run_at = CASE WHEN next_run_at < ? THEN ? ELSE next_run_at END WHERE run_id = ?`,
        failures ?? null,
        later,
        later,
        runId,
      );
      addCounts(this.#db, counts);
      return true;
    });
  }

  async runs(workflowId: number, limit: number): Promise<readonly WorkflowRunRecord[]> {
    const sql = "SELECT * FROM workflow_runs WHERE workflow_id = ? ORDER BY seq DESC LIMIT ?";
    return this.#db.all(sql, workflowId, limit).map(toRun);
  }

  async running(): Promise<readonly WorkflowRunRecord[]> {
    return this.#db.all("SELECT * FROM workflow_runs WHERE state = 'running' ORDER BY seq").map(toRun);
  }

  async cancel(id: number, now: Date): Promise<boolean> {
    const sql =
      "UPDATE workflows SET active = 0, next_run_at = NULL, updated_at = ? WHERE id = ? AND active = 1";
    return this.#db.run(sql, now.getTime(), id) > 0;
  }

  #plan(id: number, { from, nextRunAt, plannedAt }: WorkflowPlan): boolean {
    const sql =
      "UPDATE workflows SET next_run_at = ?, planned_at = ? WHERE id = ? AND active = 1 AND next_run_at IS ?";
    return this.#db.run(sql, toTime(nextRunAt), plannedAt.getTime(), id, toTime(from)) > 0;
  }
}

function outcomeOf({ steps, task, error, evidence }: Outcome): string {
  return JSON.stringify({ steps, task, error, evidence });
}

const toTime = (date: Date | undefined): number | null => date?.getTime() ?? null;
const toDate = (value: unknown): Date | undefined => (value === null ? undefined : new Date(Number(value)));
const toText = (value: unknown): string | undefined => (value === null ? undefined : String(value));

function toWorkflow(row: Row): WorkflowRecord {
  const definition = JSON.parse(String(row["definition"])) as Definition;
  return {
    ...definition,
    id: Number(row["id"]),
    sandboxId: definition.sandboxId,
    tokenHash: definition.tokenHash,
    owner: String(row["owner"]),
    active: Number(row["active"]) === 1,
    runId: toText(row["run_id"]),
    failures: Number(row["failures"]),
    nextRunAt: toDate(row["next_run_at"]),
    plannedAt: new Date(Number(row["planned_at"])),
    lastRunAt: toDate(row["last_run_at"]),
    createdAt: new Date(Number(row["created_at"])),
    updatedAt: new Date(Number(row["updated_at"])),
  };
}

function toRun(row: Row): WorkflowRunRecord {
  const { steps, task, error, evidence } = JSON.parse(String(row["outcome"])) as Outcome;
  return {
    id: String(row["id"]),
    workflowId: Number(row["workflow_id"]),
    trigger: String(row["trigger"]) as WorkflowRunRecord["trigger"],
    state: String(row["state"]) as WorkflowRunState,
    holder: String(row["holder"]),
    sandboxId: toText(row["sandbox_id"]),
    scheduledFor: toDate(row["scheduled_for"]),
    startedAt: new Date(Number(row["started_at"])),
    endedAt: toDate(row["ended_at"]),
    steps,
    task,
    error,
    evidence,
  };
}
