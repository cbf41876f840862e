import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { describe, expect, test } from "vitest";
import { FakeDriver } from "../drivers/fake/fake-driver.ts";
import { SqliteStore } from "../stores/sqlite/sqlite-store.ts";
import { Readiness } from "./readiness.ts";

function opened() {
  const root = mkdtempSync(join(tmpdir(), "aido-ready-"));
  const store = new SqliteStore(join(root, "aido.db"));
  const time = { now: 0 };
  return {
    root,
    store,
    time,
    deps: { driver: new FakeDriver(), store, dataDir: root, now: () => time.now },
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

describe("a server is ready", () => {
  test("when driver, store and disk do their work, and looking leaves nothing behind", async () => {
    await using bed = opened();
    const before = readdirSync(bed.root);
    expect(await new Readiness(bed.deps).failing()).toEqual([]);
    expect(readdirSync(bed.root)).toEqual(before);
  });

  test("not while another process keeps the database locked, and again when it lets go", async () => {
    await using bed = opened();
    const readiness = new Readiness(bed.deps);
    const other = new Database(join(bed.root, "aido.db"));
    other.exec("BEGIN IMMEDIATE");
    expect(await readiness.failing()).toEqual(["store"]);
    other.exec("ROLLBACK");
    other.close();
    bed.time.now += 2_000;
    expect(await readiness.failing()).toEqual([]);
  });

  test("not when nothing can be written to the data directory", async () => {
    await using bed = opened();
    const dataDir = join(bed.root, "gone");
    expect(await new Readiness({ ...bed.deps, dataDir }).failing()).toEqual(["disk"]);
  });

  test("not when the driver does not answer", async () => {
    await using bed = opened();
    const capabilities = async () => {
      throw new Error("no engine");
    };
    const driver = { name: "docker", capabilities };
    expect(await new Readiness({ ...bed.deps, driver }).failing()).toEqual(["driver docker"]);
  });

  test("for all who ask within a second with one look", async () => {
    await using bed = opened();
    let probes = 0;
    const probe = () => {
      probes += 1;
    };
    const store = { probe };
    const readiness = new Readiness({ ...bed.deps, store });
    await Promise.all([readiness.failing(), readiness.failing()]);
    await readiness.failing();
    expect(probes).toBe(1);
    bed.time.now += 1_000;
    await readiness.failing();
    expect(probes).toBe(2);
  });
});
