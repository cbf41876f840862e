import type { BatchAggregate, BatchKind, BatchState } from "@aido/sdk/protocol";
import { type BatchEnd, type BatchRecord, type BatchStore, isFailed } from "../../core/batch/batch-store.ts";
import type { Counts } from "../../core/metrics/counters.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";
import { addCounts } from "./sqlite-counters.ts";

export class SqliteBatches implements BatchStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async insert(batch: BatchRecord): Promise<boolean> {
    const sql = `INSERT OR IGNORE INTO batches
      (id, kind, owner, holder, state, count, aggregate, created_at, ended_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    const changed = this.#db.run(
      sql,
      batch.id,
      batch.kind,
      batch.owner,
      batch.holder,
      batch.state,
      batch.count,
      toText(batch.aggregate),
      batch.createdAt.getTime(),
      batch.endedAt?.getTime() ?? null,
      batch.expiresAt.getTime(),
    );
    return changed > 0;
  }

  async get(id: string): Promise<BatchRecord | undefined> {
    const row = this.#db.first("SELECT * FROM batches WHERE id = ?", id);
    return row === undefined ? undefined : toBatch(row);
  }

  async list({ owner, limit }: { owner?: string | undefined; limit: number }): Promise<BatchRecord[]> {
    const rows =
      owner === undefined
        ? this.#db.all("SELECT * FROM batches ORDER BY seq DESC LIMIT ?", limit)
        : this.#db.all("SELECT * FROM batches WHERE owner = ? ORDER BY seq DESC LIMIT ?", owner, limit);
    return rows.map(toBatch);
  }

  async endItem(id: string, position: number, result: object, counts: Counts): Promise<boolean> {
    return this.#db.write(() => {
      const sql = `INSERT OR IGNORE INTO batch_items (batch_seq, position, failed, result)
        SELECT seq, ?, ?, ? FROM batches WHERE id = ?`;
      const isOurs = this.#db.run(sql, position, isFailed(result) ? 1 : 0, JSON.stringify(result), id) > 0;
      if (isOurs) addCounts(this.#db, counts);
      return isOurs;
    });
  }

  async items(id: string): Promise<ReadonlyMap<number, object>> {
    const rows = this.#db.all(
      "SELECT i.position, i.result FROM batches b JOIN batch_items i ON i.batch_seq = b.seq WHERE b.id = ?",
      id,
    );
    return new Map(rows.map((row) => [Number(row["position"]), JSON.parse(String(row["result"])) as object]));
  }

  async progress(id: string): Promise<{ ended: number; failed: number }> {
    const row = this.#db.first(
      `SELECT count(*) AS ended, coalesce(sum(i.failed), 0) AS failed
       FROM batches b JOIN batch_items i ON i.batch_seq = b.seq WHERE b.id = ?`,
      id,
    );
    return { ended: Number(row?.["ended"] ?? 0), failed: Number(row?.["failed"] ?? 0) };
  }

  async end(id: string, end: BatchEnd): Promise<boolean> {
    const sql =
      "UPDATE batches SET state = ?, aggregate = ?, ended_at = ?, expires_at = ? WHERE id = ? AND state = 'running'";
    const { state, aggregate, endedAt, expiresAt } = end;
    return this.#db.run(sql, state, toText(aggregate), endedAt.getTime(), expiresAt.getTime(), id) > 0;
  }

  async running(): Promise<readonly BatchRecord[]> {
    return this.#db.all("SELECT * FROM batches WHERE state = 'running' ORDER BY seq").map(toBatch);
  }

  async remove(id: string): Promise<boolean> {
    return this.#db.run("DELETE FROM batches WHERE id = ?", id) > 0;
  }

  async removeExpired(now: Date, limit: number): Promise<number> {
    return this.#db.run(
      `DELETE FROM batches WHERE seq IN (SELECT seq FROM batches INDEXED BY batches_expired
         WHERE state <> 'running' AND expires_at <= ? ORDER BY expires_at LIMIT ?)`,
      now.getTime(),
      limit,
    );
  }
}

function toText(aggregate: BatchAggregate | undefined): string | null {
  return aggregate === undefined ? null : JSON.stringify(aggregate);
}

function toBatch(row: Row): BatchRecord {
  const aggregate = row["aggregate"];
  const endedAt = row["ended_at"];
  return {
    id: String(row["id"]),
    kind: String(row["kind"]) as BatchKind,
    owner: String(row["owner"]),
    holder: String(row["holder"]),
    state: String(row["state"]) as BatchState,
    count: Number(row["count"]),
    aggregate: aggregate === null ? undefined : (JSON.parse(String(aggregate)) as BatchAggregate),
    createdAt: new Date(Number(row["created_at"])),
    endedAt: endedAt === null ? undefined : new Date(Number(endedAt)),
    expiresAt: new Date(Number(row["expires_at"])),
  };
}
