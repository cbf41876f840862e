import type { Answer, IdempotencyStore, KeptAnswer, KeyedRequest } from "../../core/access/idempotency.ts";
import type { Row, SqliteConnection, SqlValue } from "./sqlite-connection.ts";

/** The row of one request that nobody has answered or replaced. */
const UNANSWERED = "owner = ? AND key = ? AND holder = ? AND at = ? AND status IS NULL";

export class SqliteIdempotency implements IdempotencyStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async begin(request: KeyedRequest, replacing?: KeyedRequest): Promise<KeptAnswer | undefined> {
    const { owner, key, fingerprint, holder, at } = request;
    return this.#db.write(() => {
      if (replacing !== undefined) this.#remove(replacing);
      const row = this.#db.first("SELECT * FROM kept_answers WHERE owner = ? AND key = ?", owner, key);
      if (row !== undefined) return toKept(row);
      const sql = "INSERT INTO kept_answers (owner, key, fingerprint, holder, at) VALUES (?, ?, ?, ?, ?)";
      this.#db.run(sql, owner, key, fingerprint, holder, at.getTime());
      return undefined;
    });
  }

  async finish(request: KeyedRequest, answer: Answer): Promise<boolean> {
    const sql = `UPDATE kept_answers SET status = ?, body = ? WHERE ${UNANSWERED}`;
    return this.#db.run(sql, answer.status, answer.body, ...named(request)) > 0;
  }

  async abandon(request: KeyedRequest): Promise<void> {
    this.#remove(request);
  }

  async prune(before: Date): Promise<void> {
    this.#db.run("DELETE FROM kept_answers WHERE at < ?", before.getTime());
  }

  #remove(request: KeyedRequest): void {
    this.#db.run(`DELETE FROM kept_answers WHERE ${UNANSWERED}`, ...named(request));
  }
}

function named({ owner, key, holder, at }: KeyedRequest): SqlValue[] {
  return [owner, key, holder, at.getTime()];
}

function toKept(row: Row): KeptAnswer {
  return {
    owner: String(row["owner"]),
    key: String(row["key"]),
    fingerprint: String(row["fingerprint"]),
    holder: String(row["holder"]),
    at: new Date(Number(row["at"])),
    answer: row["status"] === null ? undefined : { status: Number(row["status"]), body: String(row["body"]) },
  };
}
