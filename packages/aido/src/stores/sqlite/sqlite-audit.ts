import type { AuditEntry, AuditQuery, AuditStore, StoredAuditEntry } from "../../core/access/audit.ts";
import type { Row, SqliteConnection, SqlValue } from "./sqlite-connection.ts";

export class SqliteAudit implements AuditStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async append(entries: readonly AuditEntry[]): Promise<void> {
    this.#db.write(() => {
      for (const entry of entries) {
        this.#db.run(
          `INSERT INTO audit (request_id, operation, owner, name, sandbox, status, code, at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
          entry.requestId,
          entry.operation,
          entry.owner,
          entry.name,
          entry.sandbox ?? null,
          entry.status,
          entry.code ?? null,
          entry.at.getTime(),
        );
      }
    });
  }

  async list(query: AuditQuery): Promise<readonly StoredAuditEntry[]> {
    const conditions: string[] = [];
    const values: SqlValue[] = [];
    const where = (sql: string, value: SqlValue | undefined) => {
      if (value === undefined) return;
      conditions.push(sql);
      values.push(value);
    };
    where("owner = ?", query.owner);
    where("sandbox = ?", query.sandbox);
    where("id < ?", query.before);
    where("status < ?", query.succeeded === true ? 400 : undefined);
    const filter = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    return this.#db
      .all(`SELECT * FROM audit ${filter} ORDER BY id DESC LIMIT ?`, ...values, query.limit)
      .map(toEntry);
  }
}

function toEntry(row: Row): StoredAuditEntry {
  return {
    id: Number(row["id"]),
    requestId: String(row["request_id"]),
    operation: String(row["operation"]),
    owner: String(row["owner"]),
    name: String(row["name"]),
    sandbox: row["sandbox"] === null ? undefined : String(row["sandbox"]),
    status: Number(row["status"]),
    code: row["code"] === null ? undefined : String(row["code"]),
    at: new Date(Number(row["at"])),
  };
}
