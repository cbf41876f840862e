import type { IdempotencyStore, KeptAnswer } from "../../core/access/idempotency.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

export class SqliteIdempotency implements IdempotencyStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async begin(owner: string, key: string, fingerprint: string, at: Date): Promise<KeptAnswer | undefined> {
    return this.#db.write(() => {
      const row = this.#db.first("SELECT * FROM kept_answers WHERE owner = ? AND key = ?", owner, key);
      if (row === undefined) {
        const sql = "INSERT INTO kept_answers (owner, key, fingerprint, at) VALUES (?, ?, ?, ?)";
        this.#db.run(sql, owner, key, fingerprint, at.getTime());
        return undefined;
      }
      return {
        fingerprint: String(row["fingerprint"]),
        answer:
          row["status"] === null ? undefined : { status: Number(row["status"]), body: String(row["body"]) },
        at: new Date(Number(row["at"])),
      };
    });
  }

  async finish(owner: string, key: string, answer: { status: number; body: string }): Promise<void> {
    const sql = "UPDATE kept_answers SET status = ?, body = ? WHERE owner = ? AND key = ?";
    this.#db.run(sql, answer.status, answer.body, owner, key);
  }

  async abandon(owner: string, key: string): Promise<void> {
    this.#db.run("DELETE FROM kept_answers WHERE owner = ? AND key = ? AND status IS NULL", owner, key);
  }

  async prune(before: Date): Promise<void> {
    this.#db.run("DELETE FROM kept_answers WHERE at < ?", before.getTime());
  }
}
