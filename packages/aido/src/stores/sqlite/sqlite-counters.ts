import { COUNTERS, type CounterName, type CounterStore, type Counts } from "../../core/metrics/counters.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const ADD =
  "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value";

/** As part of a transaction that somebody else has begun. */
export function addCounts(db: SqliteConnection, counts: Counts | undefined): void {
  for (const [name, value] of Object.entries(counts ?? {})) db.run(ADD, name, Math.round(value));
}

export class SqliteCounters implements CounterStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async add(counts: Counts): Promise<void> {
    this.#db.write(() => addCounts(this.#db, counts));
  }

  async read(): Promise<Readonly<Record<CounterName, number>>> {
    const rows = this.#db.all("SELECT name, value FROM counters");
    const values = new Map(rows.map((row) => [String(row["name"]), Number(row["value"])]));
    return Object.fromEntries(COUNTERS.map((name) => [name, values.get(name) ?? 0])) as Record<
      CounterName,
      number
    >;
  }
}
