import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { storeContract } from "../../../test/contract/store-contract.ts";
import { storeIdempotencyContract } from "../../../test/contract/store-idempotency-contract.ts";
import { OWNER_LABEL } from "../../core/access/owner-label.ts";
import { MIGRATIONS } from "./migrations.ts";
import { insertSql, SANDBOX_COLUMNS, toAssignments } from "./rows.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteExecs } from "./sqlite-execs.ts";
import { SqliteSandboxes } from "./sqlite-sandboxes.ts";
import { SqliteStore } from "./sqlite-store.ts";

const open = async () => {
  const directory = temporaryDirectory();
  const store = new SqliteStore(join(directory.path, "aido.db"));
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      directory[Symbol.dispose]();
    },
  };
};

storeContract("sqlite", open);
storeIdempotencyContract("sqlite", open);

describe("a database file", () => {
  test("is readable by its owner only, and so is its directory", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "new", "deep", "aido.db");
    const store = new SqliteStore(file);
    await store.sandboxes.insert(sandboxRecord("aaaa"));
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600);
    expect(statSync(join(directory.path, "new", "deep")).mode & 0o777).toBe(0o700);
    await store.close();
  });

  test("is shared by two connections that see each other's writes", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "aido.db");
    const one = new SqliteStore(file);
    const two = new SqliteStore(file);
    await one.sandboxes.insert(sandboxRecord("aaaa"));
    expect(await two.sandboxes.transition("aaaa", "pending", "running")).toBe(true);
    expect(await one.sandboxes.transition("aaaa", "pending", "running")).toBe(false);
    await one.close();
    await two.close();
    await two.close();
  });

  test("of a version in which names were everybody's keeps them, each for its owner", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "aido.db");
    const raw = new Database(file);
    const older = MIGRATIONS.slice(
      0,
      MIGRATIONS.findIndex((sql) => sql.includes("ADD COLUMN owner")),
    );
    for (const sql of older) raw.exec(sql);
    raw.exec(
      "CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;" +
        `INSERT INTO migrations (version, applied_at) VALUES (${older.length}, 0)`,
    );
    const owned = { name: "two", labels: { [OWNER_LABEL]: "key:b" } };
    for (const record of [sandboxRecord("aaaa", { name: "one" }), sandboxRecord("bbbb", owned)]) {
      const { values } = toAssignments(SANDBOX_COLUMNS, record);
      raw.prepare(insertSql("sandboxes", SANDBOX_COLUMNS)).run(values);
    }
    raw.close();
    const store = new SqliteStore(file);
    expect((await store.sandboxes.find("one", 2, "anonymous")).map(({ id }) => id)).toEqual(["aaaa"]);
    expect((await store.sandboxes.find("two", 2, "key:b")).map(({ id }) => id)).toEqual(["bbbb"]);
    await store.sandboxes.insert(sandboxRecord("cccc", { name: "two" }));
    await store.close();
  });

  test("of a newer version is refused with the way out", () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "aido.db");
    new SqliteConnection(file).close();
    const raw = new Database(file);
    raw.exec("INSERT INTO migrations (version, applied_at) VALUES (999, 0)");
    raw.close();
    expect(() => new SqliteStore(file)).toThrow(
      expect.objectContaining({ code: "STORE_TOO_NEW", hint: expect.stringContaining("Update aido") }),
    );
  });

  test("that cannot be made names the directory and what to do", () => {
    using directory = temporaryDirectory();
    writeFileSync(join(directory.path, "file"), "");
    expect(() => new SqliteStore(join(directory.path, "file", "sub", "aido.db"))).toThrow(
      expect.objectContaining({
        code: "DATA_DIR_NOT_WRITABLE",
        hint: expect.stringContaining("AIDO_DATA_DIR"),
      }),
    );
  });

  test("that is no database is refused and left as it is", () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "aido.db");
    writeFileSync(file, "these are not the bytes of a database".repeat(100));
    expect(() => new SqliteStore(file)).toThrow(expect.objectContaining({ code: "STORE_UNAVAILABLE" }));
    expect(statSync(file).size).toBe(3700);
  });

  test("that another process keeps locked is unavailable after the wait, and usable again later", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "aido.db");
    const store = new SqliteStore(file, { busyMs: 50 });
    const other = new Database(file);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.sandboxes.insert(sandboxRecord("aaaa"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    expect(await store.sandboxes.list()).toEqual([]);
    other.exec("COMMIT");
    other.close();
    await store.sandboxes.insert(sandboxRecord("aaaa"));
    await store.close();
  });

  test("on a full disk fails with DISK_FULL and keeps what it has", async () => {
    using directory = temporaryDirectory();
    const connection = new SqliteConnection(join(directory.path, "aido.db"));
    const sandboxes = new SqliteSandboxes(connection);
    await sandboxes.insert(sandboxRecord("aaaa"));
    const pages = Number(connection.first("PRAGMA page_count")?.["page_count"]);
    connection.all(`PRAGMA max_page_count = ${pages}`);
    const huge = sandboxRecord("bbbb", { env: { A: "x".repeat(1_000_000) } });
    await expect(sandboxes.insert(huge)).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(await sandboxes.get("aaaa")).toBeDefined();
    expect(await sandboxes.get("bbbb")).toBeUndefined();
    connection.all("PRAGMA max_page_count = 1000000");
    await sandboxes.insert(huge);
    connection.close();
  });

  test("answers pages, references and due lists from an index", async () => {
    using directory = temporaryDirectory();
    const connection = new SqliteConnection(join(directory.path, "aido.db"));
    const sandboxes = new SqliteSandboxes(connection);
    const execs = new SqliteExecs(connection);
    await sandboxes.insert(sandboxRecord("aaaa"));
    await sandboxes.get("aaaa");
    await sandboxes.find("aa", 2);
    await sandboxes.find("aa", 2, "key:a");
    await sandboxes.usedBy("key:a");
    await sandboxes.update("aaaa", { name: "one" });
    await sandboxes.list({ states: ["running"], before: "aaaa" });
    await sandboxes.list({ labels: { a: "1", b: "2" } });
    await sandboxes.due(new Date(), 10);
    await sandboxes.transition("aaaa", "pending", "running");
    await execs.list("aaaa");
    await execs.running("aaaa");
    await execs.unrecorded("aaaa");
    await execs.markRecorded([{ sandboxId: "aaaa", id: "e" }]);
    await execs.end("aaaa", "e", execEnd);
    const statements = connection.used.filter((sql) => /^(SELECT|UPDATE|DELETE)/.test(sql));
    expect(statements.length).toBeGreaterThan(10);
    for (const sql of statements) {
      const values = Array.from(sql.matchAll(/\?/g), () => 1);
      const plan = connection.all(`EXPLAIN QUERY PLAN ${sql}`, ...values).map((row) => String(row["detail"]));
      const costly = plan.filter((step) => /^SCAN (?!CONSTANT)|TEMP B-TREE/.test(step));
      expect(costly, sql).toEqual([]);
    }
    connection.close();
  });
});

const execEnd = {
  status: "exited",
  exitCode: 0,
  signal: undefined,
  endedAt: new Date(),
  stdoutBytes: 0,
  stderrBytes: 0,
} as const;

function temporaryDirectory() {
  const path = mkdtempSync(join(tmpdir(), "aido-sqlite-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
