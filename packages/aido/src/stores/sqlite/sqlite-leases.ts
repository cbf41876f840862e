import type { LeaseStore } from "../../core/store/store.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

export class SqliteLeases implements LeaseStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async take(name: string, holder: string, until: Date, now: Date): Promise<boolean> {
    const sql =
      "INSERT INTO leases (name, holder, until) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE " +
      "SET holder = excluded.holder, until = excluded.until " +
      "WHERE leases.holder = excluded.holder OR leases.until <= ? OR leases.until > excluded.until";
    return this.#db.run(sql, name, holder, until.getTime(), now.getTime()) > 0;
  }

  async renew(name: string, holder: string, until: Date): Promise<boolean> {
    const sql = "UPDATE leases SET until = ? WHERE name = ? AND holder = ?";
    return this.#db.run(sql, until.getTime(), name, holder) > 0;
  }

  async release(name: string, holder: string): Promise<void> {
    this.#db.run("DELETE FROM leases WHERE name = ? AND holder = ?", name, holder);
  }

  async endOf(name: string): Promise<Date | undefined> {
    const row = this.#db.first("SELECT until FROM leases WHERE name = ?", name);
    return row === undefined ? undefined : new Date(Number(row["until"]));
  }

  async forgetEnded(before: Date): Promise<void> {
    this.#db.run("DELETE FROM leases WHERE until < ?", before.getTime());
  }
}
