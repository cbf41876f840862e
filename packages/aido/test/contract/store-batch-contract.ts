import { describe, expect, test } from "vitest";
import type { BatchRecord } from "../../src/core/batch/batch-store.ts";
import { START, type StoreUnderTest } from "./records.ts";

/** The part of the stores' contract about batches. */
export function storeBatchContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} batches`, () => {
    test("S2-13 S2-33 a batch and its parts come back as they were written, each part once", async () => {
      await using opened = await open();
      const { batches, counters } = opened.store;
      expect(await batches.insert(batch("b1"))).toBe(true);
      expect(await batches.insert(batch("b1", { owner: "other" }))).toBe(false);
      expect(await batches.get("b1")).toEqual(batch("b1"));
      expect(await batches.get("b2")).toBeUndefined();
      const counts = { total_input_tokens: 5 };
      expect(await batches.endItem("b1", 2, { exitCode: 0, stdout: "\u0000ü" }, counts)).toBe(true);
      expect(await batches.endItem("b1", 2, { exitCode: 1 }, counts)).toBe(false);
      expect(await batches.endItem("b1", 0, { error: { code: "X", message: "y" } }, {})).toBe(true);
      expect(await batches.endItem("b1", 1, { success: false }, {})).toBe(true);
      expect(await batches.endItem("b2", 0, {}, counts)).toBe(false);
      expect(await counters.read()).toMatchObject({ total_input_tokens: 5 });
      expect(await batches.items("b1")).toEqual(
        new Map<number, object>([
          [0, { error: { code: "X", message: "y" } }],
          [1, { success: false }],
          [2, { exitCode: 0, stdout: "\u0000ü" }],
        ]),
      );
      expect(await batches.progress("b1")).toEqual({ ended: 3, failed: 2 });
      expect(await batches.progress("b2")).toEqual({ ended: 0, failed: 0 });
    });

    test("a batch ends once", async () => {
      await using opened = await open();
      const { batches } = opened.store;
      await batches.insert(batch("b1"));
      const aggregate = { aggregation: "first", success: true, result: "x", from: [0] } as const;
      const end = { aggregate, endedAt: new Date(START + 5), expiresAt: new Date(START + 9) };
      expect(await batches.end("b1", { ...end, state: "done" })).toBe(true);
      expect(await batches.end("b1", { ...end, state: "lost" })).toBe(false);
      expect(await batches.get("b1")).toEqual(batch("b1", { ...end, state: "done" }));
    });

    test("batches are listed newest first, and those of one owner alone", async () => {
      await using opened = await open();
      const { batches } = opened.store;
      for (const id of ["b1", "b2", "b3"]) {
        await batches.insert(batch(id, { owner: id === "b2" ? "two" : "one" }));
      }
      const end = { aggregate: undefined, endedAt: new Date(START), expiresAt: new Date(START) };
      await batches.end("b3", { ...end, state: "cancelled" });
      const ids = (records: readonly BatchRecord[]) => records.map(({ id }) => id);
      expect(ids(await batches.list({ limit: 10 }))).toEqual(["b3", "b2", "b1"]);
      expect(ids(await batches.list({ limit: 1 }))).toEqual(["b3"]);
      expect(ids(await batches.list({ owner: "one", limit: 10 }))).toEqual(["b3", "b1"]);
      expect(ids(await batches.running())).toEqual(["b1", "b2"]);
      expect(await batches.remove("b1")).toBe(true);
      expect(await batches.remove("b1")).toBe(false);
      expect(ids(await batches.list({ limit: 10 }))).toEqual(["b3", "b2"]);
    });

    test("what has ended and expired is forgotten with its parts, as much as is asked for; what runs stays", async () => {
      await using opened = await open();
      const { batches } = opened.store;
      for (const id of ["b1", "b2", "b3", "b4"]) {
        await batches.insert(batch(id, { expiresAt: new Date(START) }));
        await batches.endItem(id, 0, {}, {});
        const end = { aggregate: undefined, endedAt: new Date(START) } as const;
        const expiresAt = new Date(START + (id === "b3" ? 500 : 100));
        if (id !== "b4") await batches.end(id, { ...end, expiresAt, state: "done" });
      }
      expect(await batches.removeExpired(new Date(START + 99), 10)).toBe(0);
      expect(await batches.removeExpired(new Date(START + 100), 1)).toBe(1);
      expect(await batches.removeExpired(new Date(START + 100), 10)).toBe(1);
      const left = (await batches.list({ limit: 10 })).map(({ id }) => id);
      expect(left).toEqual(["b4", "b3"]);
      expect((await batches.items("b1")).size).toBe(0);
    });
  });
}

function batch(id: string, changes: Partial<BatchRecord> = {}): BatchRecord {
  return {
    id,
    kind: "exec",
    owner: "one",
    holder: "p1",
    state: "running",
    count: 3,
    aggregate: undefined,
    createdAt: new Date(START),
    endedAt: undefined,
    expiresAt: new Date(START + 1),
    ...changes,
  };
}
