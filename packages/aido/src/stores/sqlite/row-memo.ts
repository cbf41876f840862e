import type { SqliteConnection } from "./sqlite-connection.ts";

const MAX_ROWS = 1_000;

/**
 * What was read of a table, for as long as nobody has written to it: asking whether somebody has is many times cheaper
 * than reading a wide row, and every command reads its sandbox's.
 */
export class RowMemo<T> {
  readonly #db: SqliteConnection;
  readonly #table: string;
  readonly #rows = new Map<string, T>();
  #version = -1;

  constructor(db: SqliteConnection, table: string) {
    this.#db = db;
    this.#table = table;
  }

  get(key: string, read: () => T): T {
    const version = this.#db.version(this.#table);
    if (version !== this.#version || this.#rows.size >= MAX_ROWS) this.#rows.clear();
    this.#version = version;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const found = read();
    if (found !== undefined) this.#rows.set(key, found);
    return found;
  }
}
