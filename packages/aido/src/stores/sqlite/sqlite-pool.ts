import type { PooledSandbox, PoolStore } from "../../core/pool/pool-store.ts";
import type { SandboxRecord } from "../../core/store/store.ts";
import { fromRow, SANDBOX_COLUMNS, toAssignments } from "./rows.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";
import type { SqliteSandboxes } from "./sqlite-sandboxes.ts";

export class SqlitePool implements PoolStore {
  readonly #db: SqliteConnection;
  readonly #sandboxes: SqliteSandboxes;

  constructor(db: SqliteConnection, sandboxes: SqliteSandboxes) {
    this.#db = db;
    this.#sandboxes = sandboxes;
  }

  async insert({ record, key, holder, isReady }: PooledSandbox): Promise<void> {
    const sql = "INSERT INTO pool (id, key, holder, is_ready, record) VALUES (?, ?, ?, ?, ?)";
    this.#db.run(sql, record.id, key, holder, isReady ? 1 : 0, toText(record));
  }

  async setReady(id: string, holder: string, record: SandboxRecord): Promise<boolean> {
    const sql = "UPDATE pool SET is_ready = 1, record = ? WHERE id = ? AND holder = ?";
    return this.#db.run(sql, toText(record), id, holder) > 0;
  }

  async claim(id: string, holder: string, record: SandboxRecord): Promise<boolean> {
    return this.#db.write(() => {
      const sql = "DELETE FROM pool WHERE id = ? AND holder = ? AND is_ready = 1";
      if (this.#db.run(sql, id, holder) === 0) return false;
      this.#sandboxes.insertWithin(record);
      return true;
    });
  }

  async takeOver(id: string, from: string, to: string): Promise<boolean> {
    return this.#db.run("UPDATE pool SET holder = ? WHERE id = ? AND holder = ?", to, id, from) > 0;
  }

  async remove(id: string, holder: string): Promise<void> {
    this.#db.run("DELETE FROM pool WHERE id = ? AND holder = ?", id, holder);
  }

  async list(): Promise<readonly PooledSandbox[]> {
    return this.#db.all("SELECT * FROM pool ORDER BY id").map((row) => ({
      record: fromRow(SANDBOX_COLUMNS, JSON.parse(String(row["record"])) as Row),
      key: String(row["key"]),
      holder: String(row["holder"]),
      isReady: row["is_ready"] === 1,
    }));
  }
}

/** As a row of the sandboxes' table would hold it. */
function toText(record: SandboxRecord): string {
  const { columns, values } = toAssignments(SANDBOX_COLUMNS, record);
  return JSON.stringify(Object.fromEntries(columns.map((column, at) => [column, values[at]])));
}
