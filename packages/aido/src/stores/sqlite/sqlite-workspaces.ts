import { quotaOfWorkspaces } from "../../core/workspace/quota-of-workspaces.ts";
import type { WorkspaceRecord, WorkspaceStore } from "../../core/workspace/workspace-store.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

export class SqliteWorkspaces implements WorkspaceStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async get(owner: string, name: string): Promise<WorkspaceRecord | undefined> {
    const row = this.#db.first("SELECT * FROM workspaces WHERE owner = ? AND name = ?", owner, name);
    return row === undefined ? undefined : toRecord(row);
  }

  async list(owner?: string): Promise<readonly WorkspaceRecord[]> {
    const rows =
      owner === undefined
        ? this.#db.all("SELECT * FROM workspaces ORDER BY name, owner")
        : this.#db.all("SELECT * FROM workspaces WHERE owner = ? ORDER BY name", owner);
    return rows.map(toRecord);
  }

  async insert(record: WorkspaceRecord, most: number): Promise<boolean> {
    return this.#db.write(() => {
      const { id, owner, name, sandboxId, createdAt, lastUsedAt } = record;
      const sql = "SELECT 1 FROM workspaces WHERE owner = ? AND name = ?";
      if (this.#db.first(sql, owner, name) !== undefined) return false;
      const own = this.#db.first("SELECT count(*) AS count FROM workspaces WHERE owner = ?", owner);
      if (most > 0 && Number(own?.["count"]) >= most) throw quotaOfWorkspaces(most);
      this.#db.run(
        `INSERT INTO workspaces (id, owner, name, sandbox_id, created_at, last_used_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
        ...[id, owner, name, sandboxId ?? null, createdAt.getTime(), lastUsedAt.getTime()],
      );
      return true;
    });
  }

  async take(id: string, holder: string | undefined, sandboxId: string, at: Date): Promise<boolean> {
    const sql = "UPDATE workspaces SET sandbox_id = ?, last_used_at = ? WHERE id = ? AND sandbox_id IS ?";
    return this.#db.run(sql, sandboxId, at.getTime(), id, holder ?? null) > 0;
  }

  async release(sandboxId: string, at: Date, id?: string): Promise<void> {
    const sql =
      "UPDATE workspaces SET sandbox_id = NULL, last_used_at = ?1 WHERE sandbox_id = ?2 AND (?3 IS NULL OR id = ?3)";
    this.#db.run(sql, at.getTime(), sandboxId, id ?? null);
  }

  async remove(id: string, holder: string | undefined): Promise<boolean> {
    return this.#db.run("DELETE FROM workspaces WHERE id = ? AND sandbox_id IS ?", id, holder ?? null) > 0;
  }

  async unusedSince(
    at: Date,
    limit: number,
    after?: Pick<WorkspaceRecord, "id" | "lastUsedAt">,
  ): Promise<readonly WorkspaceRecord[]> {
    const sql = `SELECT * FROM workspaces WHERE last_used_at <= ? AND (last_used_at, id) > (?, ?)
                 ORDER BY last_used_at, id LIMIT ?`;
    const last = after?.lastUsedAt.getTime() ?? Number.MIN_SAFE_INTEGER;
    return this.#db.all(sql, at.getTime(), last, after?.id ?? "", limit).map(toRecord);
  }
}

function toRecord(row: Row): WorkspaceRecord {
  return {
    id: String(row["id"]),
    owner: String(row["owner"]),
    name: String(row["name"]),
    sandboxId: row["sandbox_id"] === null ? undefined : String(row["sandbox_id"]),
    createdAt: new Date(Number(row["created_at"])),
    lastUsedAt: new Date(Number(row["last_used_at"])),
  };
}
