import type { Claim, ClaimPurpose, ClaimStore } from "../../core/store/store.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

export class SqliteClaims implements ClaimStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async take(claim: Claim, now: Date, replacing?: Claim): Promise<Claim | undefined> {
    return this.#db.write(() => {
      const row = this.#db.first("SELECT * FROM claims WHERE sandbox_id = ?", claim.sandboxId);
      const held = row === undefined ? undefined : toClaim(row);
      if (held !== undefined && held.until > now && held.holder !== replacing?.holder) return held;
      this.#db.run(
        "INSERT OR REPLACE INTO claims (sandbox_id, holder, purpose, until) VALUES (?, ?, ?, ?)",
        claim.sandboxId,
        claim.holder,
        claim.purpose,
        claim.until.getTime(),
      );
      return undefined;
    });
  }

  async renew(sandboxId: string, holder: string, until: Date): Promise<boolean> {
    const sql = "UPDATE claims SET until = ? WHERE sandbox_id = ? AND holder = ?";
    return this.#db.run(sql, until.getTime(), sandboxId, holder) > 0;
  }

  async release(sandboxId: string, holder: string): Promise<void> {
    this.#db.run("DELETE FROM claims WHERE sandbox_id = ? AND holder = ?", sandboxId, holder);
  }

  async get(sandboxId: string): Promise<Claim | undefined> {
    const row = this.#db.first("SELECT * FROM claims WHERE sandbox_id = ?", sandboxId);
    return row === undefined ? undefined : toClaim(row);
  }

  async list(): Promise<readonly Claim[]> {
    return this.#db.all("SELECT * FROM claims ORDER BY sandbox_id").map(toClaim);
  }
}

function toClaim(row: Row): Claim {
  return {
    sandboxId: String(row["sandbox_id"]),
    holder: String(row["holder"]),
    purpose: String(row["purpose"]) as ClaimPurpose,
    until: new Date(Number(row["until"])),
  };
}
