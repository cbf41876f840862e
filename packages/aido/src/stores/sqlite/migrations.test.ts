import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { describe, expect, test } from "vitest";
import { execRecord, START, sandboxRecord } from "../../../test/contract/records.ts";
import { MIGRATIONS } from "./migrations.ts";
import { SqliteStore } from "./sqlite-store.ts";

type Row = Record<string, unknown>;
type Rows = Map<string, readonly Row[]>;

const SANDBOX = sandboxRecord("aaaa", {
  name: "kept",
  state: "stopped",
  endReason: "stopped",
  env: { A: "1" },
  labels: { team: "x" },
  startedAt: new Date(START + 1000),
  stoppedAt: new Date(START + 2000),
  lastActivityAt: new Date(START + 2000),
});
const EXEC = execRecord("aaaa", "exec_1", { status: "exited", exitCode: 3, endedAt: new Date(START + 1500) });

const versions = MIGRATIONS.map((_, index) => index + 1);

describe("a database of an earlier version", () => {
  test.each(versions)("%i is brought up to date with everything in it", async (version) => {
    using place = temporaryDirectory();
    const today = await storeOfToday(join(place.path, "today.db"));
    const file = join(place.path, "old.db");
    const before = writeVersion(file, version, today.rows);

    const store = new SqliteStore(file);
    const sandbox = await store.sandboxes.get("aaaa");
    const exec = await store.execs.get("aaaa", "exec_1");
    await store.sandboxes.insert(sandboxRecord("bbbb"));
    await store.close();

    expect(sandbox).toEqual(SANDBOX);
    expect(exec).toEqual(EXEC);
    const raw = new Database(file);
    expect(schemaOf(raw)).toEqual(today.schema);
    for (const [table, rows] of before) {
      const after = all(raw, `SELECT * FROM "${table}"`);
      for (const row of rows) expect(after).toContainEqual(expect.objectContaining(row));
    }
    raw.close();
  });
});

/** What a store has that was never older: its schema, and rows as it writes them. */
async function storeOfToday(file: string): Promise<{ schema: readonly Row[]; rows: Rows }> {
  const store = new SqliteStore(file);
  await store.sandboxes.insert(SANDBOX);
  await store.execs.insert(EXEC);
  await store.close();
  const raw = new Database(file);
  const rows = new Map(tablesOf(raw).map((table) => [table, all(raw, `SELECT * FROM "${table}"`)] as const));
  const schema = schemaOf(raw);
  raw.close();
  return { schema, rows };
}

/** A file as that version left it, with something in every table it had; the rows that were put there. */
function writeVersion(file: string, version: number, known: Rows): Rows {
  const raw = new Database(file);
  raw.exec("PRAGMA foreign_keys = ON");
  raw.exec("CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT");
  for (const [index, sql] of MIGRATIONS.slice(0, version).entries()) {
    raw.exec(sql);
    raw.exec(`INSERT INTO migrations (version, applied_at) VALUES (${index + 1}, 0)`);
  }
  const written = new Map<string, readonly Row[]>();
  for (const table of tablesOf(raw)) {
    const columns = all(raw, `PRAGMA table_info("${table}")`);
    const rows = known.get(table) ?? [];
    const wanted = rows.length > 0 ? rows : [madeUp(raw, table, columns, written)];
    const kept = wanted.map((row) => only(row, columns));
    for (const row of kept) insert(raw, table, row);
    written.set(table, kept);
  }
  raw.close();
  return written;
}

/** A row for a table of which this test knows nothing: values of the right type, and references that lead somewhere. */
function madeUp(raw: Database.Database, table: string, columns: readonly Row[], written: Rows): Row {
  const row = Object.fromEntries(
    columns.map(({ name, type }) => [String(name), type === "INTEGER" ? 1 : `text of ${name}`]),
  ) as Row;
  for (const { from, table: other, to } of all(raw, `PRAGMA foreign_key_list("${table}")`)) {
    row[String(from)] = written.get(String(other))?.[0]?.[String(to)];
  }
  return row;
}

function only(row: Row, columns: readonly Row[]): Row {
  return Object.fromEntries(columns.map(({ name }) => [String(name), row[String(name)]]));
}

function insert(raw: Database.Database, table: string, row: Row): void {
  const names = Object.keys(row).map((name) => `"${name}"`);
  const places = names.map(() => "?").join(", ");
  // A migration may have put the very row there.
  raw
    .prepare(`INSERT OR REPLACE INTO "${table}" (${names.join(", ")}) VALUES (${places})`)
    .run(Object.values(row));
}

function tablesOf(raw: Database.Database): readonly string[] {
  const sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid";
  const names = all(raw, sql).map(({ name }) => String(name));
  return names.filter((name) => !name.startsWith("sqlite_") && name !== "migrations");
}

function schemaOf(raw: Database.Database): readonly Row[] {
  const rows = all(raw, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name");
  // Which of two ways to the same table was taken shows in its blanks alone.
  return rows.map(({ type, name, sql }) => ({ type, name, sql: String(sql).replace(/\s+/g, " ") }));
}

function all(raw: Database.Database, sql: string): readonly Row[] {
  return raw.prepare(sql).all([]) as Row[];
}

function temporaryDirectory() {
  const path = mkdtempSync(join(tmpdir(), "aido-migrations-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
