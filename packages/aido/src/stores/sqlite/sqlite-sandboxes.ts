import { AidoError, SANDBOX_STATES, type SandboxState } from "@aido/sdk/protocol";
import { ANONYMOUS, OWNER_LABEL, ownerOf } from "../../core/access/owner-label.ts";
import type { Counts, SandboxTotals } from "../../core/metrics/counters.ts";
import type {
  DemotionQuery,
  OwnerUse,
  SandboxPatch,
  SandboxQuery,
  SandboxRecord,
  SandboxStore,
} from "../../core/store/store.ts";
import { RowMemo } from "./row-memo.ts";
import { fromRow, insertSql, SANDBOX_COLUMNS, toAssignments } from "./rows.ts";
import type { Row, SqliteConnection, SqlValue } from "./sqlite-connection.ts";
import { addCounts } from "./sqlite-counters.ts";

const INSERT = insertSql("sandboxes", SANDBOX_COLUMNS);
const INSERT_LABEL = "INSERT INTO sandbox_labels (seq, key, value, state) VALUES (?, ?, ?, ?)";
const DEFAULT_LIMIT = 1000;

export class SqliteSandboxes implements SandboxStore {
  readonly #db: SqliteConnection;
  readonly #memo: RowMemo<SandboxRecord | undefined>;

  constructor(db: SqliteConnection) {
    this.#db = db;
    this.#memo = new RowMemo(db, "sandboxes");
  }

  async insert(record: SandboxRecord): Promise<void> {
    this.#db.write(() => this.insertWithin(record));
  }

  /** As part of a transaction that somebody else has begun. */
  insertWithin(record: SandboxRecord): void {
    const taken = this.#db.first("SELECT id FROM sandboxes WHERE id = ?", record.id);
    if (taken !== undefined) throw nameTaken(record, record.id);
    if (record.name !== undefined) this.#refuseTakenName(record.id, record.name, record.labels);
    this.#db.run(INSERT, ...toAssignments(SANDBOX_COLUMNS, record).values);
    this.#writeLabels(record.id);
  }

  async get(id: string): Promise<SandboxRecord | undefined> {
    return this.#byId(id);
  }

  async find(reference: string, limit: number, owner?: string): Promise<readonly SandboxRecord[]> {
    const exact = this.#byId(reference);
    const isSeen = exact !== undefined && (owner === undefined || ownerOf(exact.labels) === owner);
    if (isSeen && exact.state !== "deleted") return [exact];
    const named = this.#named(reference, limit, owner);
    if (named.length > 0) return named.map(toRecord);
    if (reference.length < 2) return [];
    const rows = this.#db.all(
      `SELECT * FROM sandboxes WHERE id >= ? AND id < ? AND state <> 'deleted'${owner === undefined ? "" : " AND owner = ?"} ` +
        "ORDER BY id LIMIT ?",
      reference,
      `${reference}\u{10ffff}`,
      ...(owner === undefined ? [] : [owner]),
      limit,
    );
    return rows.map(toRecord);
  }

  async list(query: SandboxQuery = {}): Promise<readonly SandboxRecord[]> {
    const limit = query.limit ?? DEFAULT_LIMIT;
    const states = new Set(query.states ?? SANDBOX_STATES.filter((state) => state !== "deleted"));
    let before = Number.MAX_SAFE_INTEGER;
    if (query.before !== undefined) {
      const cursor = this.#db.first("SELECT seq FROM sandboxes WHERE id = ?", query.before);
      if (cursor === undefined) return [];
      before = Number(cursor["seq"]);
    }
    // One ordered index range per state, merged here: the cost is the page, not the table.
    const rows = [...states].flatMap((state) => this.#page(state, query.labels ?? {}, before, limit));
    rows.sort((a, b) => Number(b["seq"]) - Number(a["seq"]));
    return rows.slice(0, limit).map(toRecord);
  }

  async transition(
    id: string,
    from: SandboxState | readonly SandboxState[],
    to: SandboxState,
    patch: SandboxPatch = {},
    counts?: Counts,
  ): Promise<boolean> {
    const states = typeof from === "string" ? [from] : from;
    const where = `id = ? AND state IN (${states.map(() => "?").join(", ")})`;
    return this.#db.write(() => {
      const isMoved = this.#update({ ...patch, state: to }, where, [id, ...states]) > 0;
      if (isMoved) addCounts(this.#db, counts);
      return isMoved;
    });
  }

  async update(id: string, patch: SandboxPatch, counts?: Counts): Promise<void> {
    if (Object.keys(patch).length === 0) return;
    this.#db.write(() => {
      if (this.#update(patch, "id = ?", [id]) > 0) addCounts(this.#db, counts);
    });
  }

  async due(now: Date, limit: number): Promise<readonly SandboxRecord[]> {
    const rows = this.#db.all(
      "SELECT * FROM sandboxes INDEXED BY sandboxes_due WHERE expires_at IS NOT NULL AND expires_at <= ? " +
        "AND state IN ('running', 'stopped') ORDER BY expires_at LIMIT ?",
      now.getTime(),
      limit,
    );
    return rows.map(toRecord);
  }

  async dueForDemotion(query: DemotionQuery): Promise<readonly SandboxRecord[]> {
    const isOwn = query.ownDestination === true;
    const after = query.after === undefined ? [] : [Number(query.after.tierSince), query.after.id];
    const rows = this.#db.all(
      `SELECT * FROM sandboxes INDEXED BY ${isOwn ? "sandboxes_tier_own" : "sandboxes_tier"} ` +
        `WHERE tier IS NOT NULL AND tier = ? AND tier_since <= ?${isOwn ? " AND snapshot_destination IS NOT NULL" : ""}` +
        `${after.length > 0 ? " AND (tier_since, id) > (?, ?)" : ""} ORDER BY tier_since, id LIMIT ?`,
      query.tier,
      query.since.getTime(),
      ...after,
      query.limit,
    );
    return rows.map(toRecord);
  }

  async idleSince(now: Date, limit: number): Promise<readonly SandboxRecord[]> {
    const rows = this.#db.all(
      "SELECT * FROM sandboxes INDEXED BY sandboxes_idle WHERE state = 'running' AND idle_timeout_ms > 0 " +
        "AND last_activity_at + idle_timeout_ms <= ? ORDER BY last_activity_at + idle_timeout_ms LIMIT ?",
      now.getTime(),
      limit,
    );
    return rows.map(toRecord);
  }

  async touch(ids: readonly string[], at: Date): Promise<void> {
    const sql =
      "UPDATE sandboxes SET last_activity_at = ? WHERE id = ? AND state = 'running' AND last_activity_at < ?";
    this.#db.write(() => {
      for (const id of ids) this.#db.run(sql, at.getTime(), id, at.getTime());
    });
  }

  async touchAll(at: Date): Promise<void> {
    this.#db.run(
      "UPDATE sandboxes SET last_activity_at = ? WHERE state = 'running' AND idle_timeout_ms > 0",
      at.getTime(),
    );
  }

  /** Read from the index of states alone. */
  async countByState(): Promise<Readonly<Record<string, number>>> {
    const rows = this.#db.all("SELECT state, count(*) AS count FROM sandboxes GROUP BY state");
    return Object.fromEntries(rows.map((row) => [String(row["state"]), Number(row["count"])]));
  }

  async totals(): Promise<SandboxTotals> {
    const row = this.#db.first(
      `SELECT count(*) AS active, sum(json_extract(limits, '$.cpus')) AS cpus,
         sum(json_extract(limits, '$.memoryBytes')) AS memory,
         (SELECT value FROM counters WHERE name = 'peak_sandboxes') AS peak
       FROM sandboxes WHERE state = 'running'`,
    );
    return {
      active: Number(row?.["active"] ?? 0),
      peak: Number(row?.["peak"] ?? 0),
      cpus: Number(row?.["cpus"] ?? 0),
      memoryBytes: Number(row?.["memory"] ?? 0),
    };
  }

  async usedBy(owner: string): Promise<OwnerUse> {
    const row = this.#db.first(
      `SELECT count(*) AS sandboxes,
         sum(CASE WHEN l.state <> 'stopped' THEN json_extract(s.limits, '$.cpus') END) AS cpus,
         sum(CASE WHEN l.state <> 'stopped' THEN json_extract(s.limits, '$.memoryBytes') END) AS memory
       FROM sandbox_labels l CROSS JOIN sandboxes s ON s.seq = l.seq
       WHERE l.key = ? AND l.value = ? AND l.state IN ('pending', 'running', 'stopped')`,
      OWNER_LABEL,
      owner,
    );
    return {
      sandboxes: Number(row?.["sandboxes"] ?? 0),
      cpus: Number(row?.["cpus"] ?? 0),
      memoryBytes: Number(row?.["memory"] ?? 0),
    };
  }

  async remove(id: string, counts?: Counts): Promise<void> {
    this.#db.write(() => {
      if (this.#db.run("DELETE FROM sandboxes WHERE id = ?", id) > 0) addCounts(this.#db, counts);
      this.#db.run("DELETE FROM claims WHERE sandbox_id = ?", id);
    });
  }

  #byId(id: string): SandboxRecord | undefined {
    const known = this.#memo.get(id, () => {
      const row = this.#db.first("SELECT * FROM sandboxes WHERE id = ?", id);
      if (row === undefined) return undefined;
      const record = toRecord(row);
      for (const value of Object.values(record)) Object.freeze(value);
      return record;
    });
    // Of the caller's own: the next one reads the same row.
    return known === undefined ? undefined : { ...known };
  }

  #named(name: string, limit: number, owner: string | undefined): Row[] {
    const own = this.#db.all(
      "SELECT * FROM sandboxes WHERE name = ? AND owner = ? AND state <> 'deleted'",
      name,
      owner ?? ANONYMOUS,
    );
    if (owner !== undefined) return own;
    const others = this.#db.all(
      "SELECT * FROM sandboxes WHERE name = ? AND owner <> ? AND state <> 'deleted' ORDER BY owner LIMIT ?",
      name,
      ANONYMOUS,
      limit - own.length,
    );
    return [...own, ...others];
  }

  #page(state: SandboxState, labels: Readonly<Record<string, string>>, before: number, limit: number): Row[] {
    const [first, ...others] = Object.entries(labels);
    if (first === undefined) {
      return this.#db.all(
        "SELECT * FROM sandboxes WHERE state = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        state,
        before,
        limit,
      );
    }
    const also = others.map(
      () => " AND EXISTS (SELECT 1 FROM sandbox_labels o WHERE o.seq = l.seq AND o.key = ? AND o.value = ?)",
    );
    return this.#db.all(
      "SELECT s.* FROM sandbox_labels l CROSS JOIN sandboxes s ON s.seq = l.seq " +
        `WHERE l.key = ? AND l.value = ? AND l.state = ? AND l.seq < ?${also.join("")} ORDER BY l.seq DESC LIMIT ?`,
      ...first,
      state,
      before,
      ...others.flat(),
      limit,
    );
  }

  #update(patch: Partial<SandboxRecord>, where: string, values: readonly SqlValue[]): number {
    const id = String(values[0]);
    if (patch.name !== undefined) {
      this.#refuseTakenName(id, patch.name, patch.labels ?? this.#byId(id)?.labels ?? {});
    }
    const set = toAssignments(SANDBOX_COLUMNS, patch);
    const changed = this.#db.run(
      `UPDATE sandboxes SET ${set.columns.map((column) => `${column} = ?`).join(", ")} WHERE ${where}`,
      ...set.values,
      ...values,
    );
    if (changed > 0 && "labels" in patch) this.#writeLabels(id);
    return changed;
  }

  #refuseTakenName(id: string, name: string, labels: SandboxRecord["labels"]): void {
    const taken = this.#db.first(
      "SELECT id FROM sandboxes WHERE name = ? AND owner = ? AND state <> 'deleted' AND id <> ?",
      name,
      ownerOf(labels),
      id,
    );
    if (taken !== undefined) throw nameTaken({ id, name }, String(taken["id"]));
  }

  #writeLabels(id: string): void {
    const row = this.#db.first("SELECT seq, state, labels FROM sandboxes WHERE id = ?", id);
    if (row === undefined) return;
    const seq = Number(row["seq"]);
    this.#db.run("DELETE FROM sandbox_labels WHERE seq = ?", seq);
    const labels = SANDBOX_COLUMNS.labels.read(row["labels"] ?? "{}");
    for (const [key, value] of Object.entries(labels)) {
      this.#db.run(INSERT_LABEL, seq, key, value, String(row["state"]));
    }
  }
}

function toRecord(row: Row): SandboxRecord {
  return fromRow(SANDBOX_COLUMNS, row);
}

function nameTaken(record: Pick<SandboxRecord, "id" | "name">, by: string): AidoError {
  const what = by === record.id ? `id ${record.id}` : `name ${record.name}`;
  return new AidoError("CONTAINER_NAME_TAKEN", `The ${what} is already in use by sandbox ${by}`, {
    hint: "Choose another name, or remove the other sandbox with `aido sandbox destroy`.",
    details: { id: by },
  });
}
