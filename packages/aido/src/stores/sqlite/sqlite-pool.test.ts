import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { MemoryStore } from "../memory/memory-store.ts";
import { SqliteStore } from "./sqlite-store.ts";

describe.each(["sqlite", "memory"])("the pool in the %s store", (kind) => {
  test("a pooled sandbox is none until it is claimed, and then is no longer pooled", async () => {
    await using bed = open(kind);
    const { pool, sandboxes } = bed.store;
    const record = sandboxRecord("box", { startedAt: new Date(5), state: "running" });
    await pool.insert({ record: { ...record, state: "pending" }, key: "k", holder: "p1", isReady: false });
    expect(await pool.claim("box", "p1", record)).toBe(false);
    expect(await pool.setReady("box", "p2", record)).toBe(false);
    expect(await pool.setReady("box", "p1", record)).toBe(true);
    expect(await pool.list()).toEqual([{ record, key: "k", holder: "p1", isReady: true }]);
    expect(await sandboxes.list()).toEqual([]);
    expect(await sandboxes.get("box")).toBeUndefined();
    expect(await sandboxes.find("bo", 2)).toEqual([]);
    expect(await pool.claim("box", "p2", record)).toBe(false);
    const mine = { ...record, name: "mine", labels: { owner: "a" } };
    expect(await pool.claim("box", "p1", mine)).toBe(true);
    expect(await pool.claim("box", "p1", mine)).toBe(false);
    expect(await pool.list()).toEqual([]);
    expect(await sandboxes.list({ labels: { owner: "a" } })).toEqual([mine]);
  });

  test("a name that is in use leaves everything as it was", async () => {
    await using bed = open(kind);
    const { pool, sandboxes } = bed.store;
    await sandboxes.insert(sandboxRecord("other", { name: "taken" }));
    const record = sandboxRecord("box", {});
    await pool.insert({ record, key: "k", holder: "p1", isReady: true });
    const claim = pool.claim("box", "p1", { ...record, name: "taken" });
    await expect(claim).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
    expect(await pool.list()).toHaveLength(1);
    expect(await sandboxes.get("box")).toBeUndefined();
  });

  test("of two that take one over, one gets it, and the former holder has it no longer", async () => {
    await using bed = open(kind);
    const { pool } = bed.store;
    const record = sandboxRecord("box", {});
    await pool.insert({ record, key: "k", holder: "dead", isReady: true });
    const took = await Promise.all([pool.takeOver("box", "dead", "p1"), pool.takeOver("box", "dead", "p2")]);
    expect(took).toEqual([true, false]);
    await pool.remove("box", "dead");
    expect(await pool.list()).toHaveLength(1);
    await pool.remove("box", "p1");
    expect(await pool.list()).toEqual([]);
  });
});

function open(kind: string) {
  const directory = mkdtempSync(join(tmpdir(), "aido-pool-"));
  const store = kind === "sqlite" ? new SqliteStore(join(directory, "aido.db")) : new MemoryStore();
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}
