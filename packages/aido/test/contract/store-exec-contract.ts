import type { ExecPage } from "@aido/sdk";
import { describe, expect, test } from "vitest";
import type { ExecEnd } from "../../src/core/store/store.ts";
import { execRecord, START, type StoreUnderTest, sandboxRecord } from "./records.ts";

const END: ExecEnd = {
  status: "exited",
  exitCode: 3,
  signal: undefined,
  endedAt: new Date(START + 5),
  stdoutBytes: 7,
  stderrBytes: 9,
};

/** The part of the stores' contract about execs. */
export function storeExecContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} execs`, () => {
    test("an exec is inserted once and listed newest first", async () => {
      await using opened = await open();
      const { sandboxes, execs } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await sandboxes.insert(sandboxRecord("bbbb"));
      expect(await execs.insert(execRecord("aaaa", "e1"))).toBe(true);
      expect(await execs.insert(execRecord("aaaa", "e1", { argv: ["other"] }))).toBe(false);
      const asked = execRecord("bbbb", "e1", { fingerprint: "f1" });
      expect(await execs.insert(asked)).toBe(true);
      expect(await execs.get("bbbb", "e1")).toEqual(asked);
      expect(await execs.insert(execRecord("aaaa", "e2"))).toBe(true);
      expect(await execs.get("aaaa", "e1")).toEqual(execRecord("aaaa", "e1"));
      expect((await execs.list("aaaa")).map((exec) => exec.id)).toEqual(["e2", "e1"]);
      const page = async (asked: ExecPage) => (await execs.list("aaaa", asked)).map((exec) => exec.id);
      expect(await page({ limit: 1 })).toEqual(["e2"]);
      expect(await page({ limit: 1, before: "e2" })).toEqual(["e1"]);
      expect(await page({ before: "e1" })).toEqual([]);
      expect(await page({ before: "gone" })).toEqual([]);
      await execs.removeAll("aaaa");
      expect(await execs.list("aaaa")).toEqual([]);
      expect(await execs.list("bbbb")).toHaveLength(1);
    });

    test("an exec of an unknown sandbox is refused", async () => {
      await using opened = await open();
      await expect(opened.store.execs.insert(execRecord("nobody", "e1"))).rejects.toMatchObject({
        code: "CONTAINER_NOT_FOUND",
      });
    });

    test("an exec ends once", async () => {
      await using opened = await open();
      const { sandboxes, execs } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await execs.insert(execRecord("aaaa", "e1"));
      await execs.insert(execRecord("aaaa", "e2"));
      expect(await execs.end("aaaa", "e1", END)).toBe(true);
      expect(await execs.end("aaaa", "e1", { ...END, status: "lost" })).toBe(false);
      expect(await execs.end("aaaa", "unknown", END)).toBe(false);
      expect(await execs.get("aaaa", "e1")).toEqual(execRecord("aaaa", "e1", END));
      expect((await execs.running("aaaa")).map((exec) => exec.id)).toEqual(["e2"]);
      await sandboxes.insert(sandboxRecord("bbbb"));
      await execs.insert(execRecord("bbbb", "e1"));
      expect(await execs.countRunning()).toBe(2);
    });

    test("why a program could not be started is kept with its end", async () => {
      await using opened = await open();
      const { sandboxes, execs } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await execs.insert(execRecord("aaaa", "e1"));
      const startError = { code: "EXECUTION_FAILED", message: "no “x”", details: { errno: "ENOENT" } };
      await execs.end("aaaa", "e1", { ...END, startError });
      expect(await execs.get("aaaa", "e1")).toEqual(execRecord("aaaa", "e1", { ...END, startError }));
    });

    test("execs are unrecorded until they are marked, or end with nothing to record; told oldest first", async () => {
      await using opened = await open();
      const { sandboxes, execs } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await sandboxes.insert(sandboxRecord("bbbb"));
      const unrecorded = async () => (await execs.unrecorded("aaaa")).map((exec) => exec.id);
      for (const id of ["e1", "e2", "e3", "e4"]) {
        await execs.insert(execRecord("aaaa", id, { unrecorded: true }));
      }
      await execs.insert(execRecord("aaaa", "e5"));
      await execs.insert(execRecord("bbbb", "e1", { unrecorded: true }));
      await execs.end("aaaa", "e1", END);
      await execs.end("aaaa", "e2", { ...END, unrecorded: false });
      expect(await unrecorded()).toEqual(["e1", "e3", "e4"]);
      expect((await execs.running("aaaa")).map((exec) => exec.id)).toEqual(["e5", "e4", "e3"]);
      await execs.markRecorded([
        { sandboxId: "aaaa", id: "e1" },
        { sandboxId: "aaaa", id: "e4" },
        { sandboxId: "nobody", id: "e1" },
      ]);
      expect(await unrecorded()).toEqual(["e3"]);
      expect(await execs.get("aaaa", "e1")).toEqual(execRecord("aaaa", "e1", END));
      expect(await execs.unrecorded("bbbb")).toHaveLength(1);
    });

    test("the last end of a sandbox's execs is that of the one that ended last", async () => {
      await using opened = await open();
      const { sandboxes, execs } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await execs.insert(execRecord("aaaa", "e1"));
      await execs.insert(execRecord("aaaa", "e2"));
      expect(await execs.lastEnd("aaaa")).toBeUndefined();
      await execs.end("aaaa", "e2", { ...END, endedAt: new Date(START + 5) });
      await execs.end("aaaa", "e1", { ...END, endedAt: new Date(START + 9) });
      expect(await execs.lastEnd("aaaa")).toEqual(new Date(START + 9));
      expect(await execs.lastEnd("nobody")).toBeUndefined();
    });
  });
}
