import type { ExecPage } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { ExecEnd, ExecRecord, ExecStore } from "../../core/store/store.ts";
import { EXEC_COLUMNS, fromRow, namesOf, toAssignments } from "./rows.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

const NAMES = namesOf(EXEC_COLUMNS);
/** One statement, because it is on the way of every command. */
const INSERT = `INSERT INTO execs (${NAMES.join(", ")}, seq)
  SELECT ${NAMES.map(() => "?").join(", ")}, (SELECT coalesce(max(seq), 0) + 1 FROM execs WHERE sandbox_id = ?)
  WHERE EXISTS (SELECT 1 FROM sandboxes WHERE id = ?) ON CONFLICT (sandbox_id, id) DO NOTHING`;
const DEFAULT_LIMIT = 1000;

export class SqliteExecs implements ExecStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async insert(record: ExecRecord): Promise<boolean> {
    const { values } = toAssignments(EXEC_COLUMNS, record);
    if (this.#db.run(INSERT, ...values, record.sandboxId, record.sandboxId) > 0) return true;
    if (this.#db.first("SELECT 1 FROM sandboxes WHERE id = ?", record.sandboxId) !== undefined) return false;
    throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${record.sandboxId} does not exist`, {
      details: { id: record.sandboxId },
    });
  }

  async get(sandboxId: string, execId: string): Promise<ExecRecord | undefined> {
    const row = this.#db.first("SELECT * FROM execs WHERE sandbox_id = ? AND id = ?", sandboxId, execId);
    return row === undefined ? undefined : toRecord(row);
  }

  async list(
    sandboxId: string,
    { limit = DEFAULT_LIMIT, before }: ExecPage = {},
  ): Promise<readonly ExecRecord[]> {
    const [and, ...values] =
      before === undefined
        ? [""]
        : ["AND seq < (SELECT seq FROM execs WHERE sandbox_id = ? AND id = ?)", sandboxId, before];
    const sql = `SELECT * FROM execs WHERE sandbox_id = ? ${and} ORDER BY seq DESC LIMIT ?`;
    return this.#db.all(sql, sandboxId, ...values, limit).map(toRecord);
  }

  async running(sandboxId: string): Promise<readonly ExecRecord[]> {
    return this.#db
      .all("SELECT * FROM execs WHERE sandbox_id = ? AND status = 'running' ORDER BY seq DESC", sandboxId)
      .map(toRecord);
  }

  async unrecorded(sandboxId: string): Promise<readonly ExecRecord[]> {
    return this.#db
      .all("SELECT * FROM execs WHERE sandbox_id = ? AND unrecorded = 1 ORDER BY seq", sandboxId)
      .map(toRecord);
  }

  async markRecorded(execs: readonly Pick<ExecRecord, "sandboxId" | "id">[]): Promise<void> {
    this.#db.write(() => {
      for (const { sandboxId, id } of execs) {
        this.#db.run("UPDATE execs SET unrecorded = 0 WHERE sandbox_id = ? AND id = ?", sandboxId, id);
      }
    });
  }

  async countRunning(): Promise<number> {
    return Number(this.#db.first("SELECT count(*) AS count FROM execs WHERE status = 'running'")?.["count"]);
  }

  async lastEnd(sandboxId: string): Promise<Date | undefined> {
    const row = this.#db.first("SELECT max(ended_at) AS at FROM execs WHERE sandbox_id = ?", sandboxId);
    const at = row?.["at"] ?? null;
    return at === null ? undefined : new Date(Number(at));
  }

  async end(sandboxId: string, execId: string, end: ExecEnd): Promise<boolean> {
    const set = toAssignments(EXEC_COLUMNS, end);
    const changed = this.#db.run(
      `UPDATE execs SET ${set.columns.map((column) => `${column} = ?`).join(", ")} ` +
        "WHERE sandbox_id = ? AND id = ? AND status = 'running'",
      ...set.values,
      sandboxId,
      execId,
    );
    return changed > 0;
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.#db.run("DELETE FROM execs WHERE sandbox_id = ?", sandboxId);
  }
}

function toRecord(row: Row): ExecRecord {
  return fromRow(EXEC_COLUMNS, row);
}
