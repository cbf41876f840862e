import { closeSync, constants, openSync } from "node:fs";
import { dirname } from "node:path";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type Database from "libsql";
import { makeDirectories } from "../../core/make-directories.ts";
import { loadLibsql } from "./load-libsql.ts";
import { MIGRATIONS } from "./migrations.ts";
import { SpaceReserve } from "./space-reserve.ts";
import { translateSqliteError } from "./translate-sqlite-error.ts";

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

/** Which table a statement writes to. */
const WRITES = /^\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)/i;

interface Prepared {
  readonly statement: ReturnType<Database.Database["prepare"]>;
  readonly table: string | undefined;
}

/** One open database file. Statements are prepared once; every failure is translated. */
export class SqliteConnection {
  readonly file: string;
  readonly #database: Database.Database;
  readonly #reserve: SpaceReserve;
  readonly #statements = new Map<string, Prepared>();
  /** How often this connection has written to each table. */
  readonly #ownWrites = new Map<string, number>();
  /** How often anything may have changed besides: by others' writes, or back by our own. */
  readonly #busyMs: number;
  #otherWrites = 0;
  #dataVersion: SqlValue | undefined;
  /** Whether that has been asked for since anything from outside could be heard. */
  #isAsked = false;
  readonly #askAgain = (): void => {
    this.#isAsked = false;
  };

  /** `busyMs`: how long a write waits for another process's. */
  constructor(file: string, busyMs = 5000) {
    this.file = file;
    this.#busyMs = busyMs;
    this.#reserve = new SpaceReserve(`${file}-reserve`);
    this.#database = this.#translated(() => {
      makeDirectories(dirname(file));
      // SQLite gives its journal files the mode of the database, so only this one needs care.
      closeSync(openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
      return new (loadLibsql())(file, { timeout: busyMs });
    });
    try {
      this.#withReserve(() => this.#prepareDatabase(busyMs));
      this.#reserve.keep();
    } catch (thrown) {
      this.#database.close();
      throw thrown;
    }
  }

  /** Every statement that was used so far. */
  get used(): readonly string[] {
    return [...this.#statements.keys()];
  }

  all(sql: string, ...values: SqlValue[]): Row[] {
    return this.#translated(() => this.#statement(sql).all(values) as Row[]);
  }

  first(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#translated(() => this.#statement(sql).get(values) as Row | undefined);
  }

  /**
   * Another number than before whenever the table may hold something else: written by us or by anybody. Of others' writes
   * the file tells once for all that follows from one event and does not write; nobody can have told us of a later one.
   */
  version(table: string): number {
    if (!this.#isAsked) {
      const dataVersion = this.first("PRAGMA data_version")?.["data_version"] ?? null;
      if (dataVersion !== this.#dataVersion) this.#otherWrites += 1;
      this.#dataVersion = dataVersion;
      this.#isAsked = true;
      // Runs when no promise is left to go on.
      process.nextTick(this.#askAgain);
    }
    return this.#otherWrites + (this.#ownWrites.get(table) ?? 0);
  }

  /** The number of rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    // It may wait for another's.
    this.#isAsked = false;
    return this.#withReserve(() => this.#statement(sql).run(values).changes);
  }

  /** Takes the write lock at once, so that nothing read inside can be stale when it is written. */
  write<T>(work: () => T): T {
    return this.#withReserve(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      this.#isAsked = false;
      try {
        const result = work();
        this.#database.exec("COMMIT");
        return result;
      } catch (thrown) {
        // After some failures, a full disk among them, SQLite has rolled back already.
        if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
        this.#otherWrites += 1;
        throw thrown;
      }
    });
  }

  /** Raises unless a write goes through within `waitMs`, without the space that is kept for worse times. */
  probe(waitMs: number): void {
    this.#translated(() => {
      this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`);
      try {
        this.#database.exec("UPDATE counters SET value = value WHERE name = 'peak_sandboxes'");
      } finally {
        this.#database.exec(`PRAGMA busy_timeout = ${this.#busyMs}`);
      }
    });
  }

  close(): void {
    this.#statements.clear();
    if (this.#database.open) this.#database.close();
  }

  #statement(sql: string): Prepared["statement"] {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      prepared = { statement: this.#database.prepare(sql), table: WRITES.exec(sql)?.[1] };
      this.#statements.set(sql, prepared);
    }
    const { statement, table } = prepared;
    if (table !== undefined) this.#ownWrites.set(table, (this.#ownWrites.get(table) ?? 0) + 1);
    return statement;
  }

  #prepareDatabase(busyMs: number): void {
    this.#enterWalMode(busyMs);
    // The journal goes into the database four times more seldom than by default: each time a command waits for the disk.
    this.#database.exec(
      "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000",
    );
    if (this.#version() === MIGRATIONS.length) return;
    this.write(() => this.#migrate());
  }

  /** Changing the journal mode needs the file alone and does not wait by itself when two processes come first. */
  #enterWalMode(busyMs: number): void {
    const deadline = Date.now() + busyMs;
    while (this.first("PRAGMA journal_mode")?.["journal_mode"] !== "wal") {
      try {
        this.#database.prepare("PRAGMA journal_mode = WAL").all([]);
      } catch (thrown) {
        const isBusy = String((thrown as { code?: unknown }).code).startsWith("SQLITE_BUSY");
        if (!isBusy || Date.now() >= deadline) throw thrown;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      }
    }
  }

  #version(): number {
    const table = this.#database
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'migrations'")
      .all([]);
    if (table.length === 0) return 0;
    const rows = this.#database.prepare("SELECT max(version) AS version FROM migrations").all([]) as Row[];
    return Number(rows[0]?.["version"] ?? 0);
  }

  #migrate(): void {
    this.#database.exec(
      "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT",
    );
    const version = this.#version();
    if (version > MIGRATIONS.length) {
      throw new AidoError("STORE_TOO_NEW", `${this.file} was written by a newer version of aido`, {
        hint: "Update aido, or choose another directory with `--data-dir`.",
        details: { file: this.file, version, known: MIGRATIONS.length },
      });
    }
    for (const [index, sql] of MIGRATIONS.entries()) {
      if (index < version) continue;
      this.#database.exec(sql);
      this.#database
        .prepare("INSERT INTO migrations (version, applied_at) VALUES (?, ?)")
        .run([index + 1, Date.now()]);
    }
  }

  /** On a full disk once more, with the space that was kept for it. What fails has changed nothing. */
  #withReserve<T>(work: () => T): T {
    try {
      return this.#translated(work);
    } catch (thrown) {
      if (!isAidoError(thrown, "DISK_FULL") || !this.#reserve.release()) throw thrown;
      return this.#translated(work);
    }
  }

  #translated<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw translateSqliteError(thrown, this.file);
    }
  }
}
