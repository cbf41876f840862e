import { describe, expect, test } from "vitest";
import type { RunRow } from "../../src/core/store/store.ts";
import { agentSessionsContract } from "./agent-sessions-contract.ts";
import { START, type StoreUnderTest, sandboxRecord } from "./records.ts";

/** The part of the stores' contract about runs, claims, leases and evidence. */
export function storeWorkContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} runs`, () => {
    test("a run is replaced by put and moves only from where it is", async () => {
      await using opened = await open();
      const { sandboxes, runs } = opened.store;
      await expect(runs.put(run("nobody"))).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
      await sandboxes.insert(sandboxRecord("aaaa"));
      await runs.put(run("aaaa"));
      await runs.put({ ...run("aaaa"), task: "b.py" });
      expect(await runs.transition("aaaa", "running", "completed")).toBe(false);
      expect(await runs.transition("aaaa", "pending", "running", { execId: "e1" })).toBe(true);
      expect(await runs.get("aaaa")).toEqual({
        ...run("aaaa"),
        task: "b.py",
        status: "running",
        execId: "e1",
      });
      await runs.remove("aaaa");
      expect(await runs.get("aaaa")).toBeUndefined();
    });
  });

  describe(`${name} claims`, () => {
    test("one holder at a time, until it lets go or its time is over", async () => {
      await using opened = await open();
      const { claims } = opened.store;
      const now = new Date(START);
      expect(await claims.take(claim("aaaa", "p1", 100), now)).toBeUndefined();
      expect(await claims.take(claim("aaaa", "p2", 100), now)).toEqual(claim("aaaa", "p1", 100));
      expect(await claims.take(claim("bbbb", "p2", 100), now)).toBeUndefined();
      expect((await claims.list()).map((held) => held.sandboxId)).toEqual(["aaaa", "bbbb"]);
      expect(await claims.renew("aaaa", "p2", new Date(START + 500))).toBe(false);
      expect(await claims.renew("aaaa", "p1", new Date(START + 500))).toBe(true);
      expect(await claims.take(claim("aaaa", "p2", 900), new Date(START + 499))).toBeDefined();
      expect(await claims.take(claim("aaaa", "p2", 900), new Date(START + 500))).toBeUndefined();
      await claims.release("aaaa", "p1");
      expect(await claims.get("aaaa")).toEqual(claim("aaaa", "p2", 900));
      await claims.release("aaaa", "p2");
      expect(await claims.get("aaaa")).toBeUndefined();
    });

    test("a claim whose holder is known to be dead is replaced before its time, once", async () => {
      await using opened = await open();
      const { claims } = opened.store;
      const now = new Date(START);
      const dead = claim("aaaa", "dead", 1000);
      await claims.take(dead, now);
      expect(await claims.take(claim("aaaa", "p2", 1000), now, dead)).toBeUndefined();
      expect(await claims.take(claim("aaaa", "p3", 1000), now, dead)).toEqual(claim("aaaa", "p2", 1000));
    });
  });

  describe(`${name} leases`, () => {
    const at = (ms: number) => new Date(START + ms);

    test("one holder at a time, until it lets go or its time is over", async () => {
      await using opened = await open();
      const { leases } = opened.store;
      expect(await leases.take("reaper", "p1", at(100), at(0))).toBe(true);
      expect(await leases.take("reaper", "p2", at(110), at(10))).toBe(false);
      expect(await leases.take("other", "p2", at(110), at(10))).toBe(true);
      expect(await leases.take("reaper", "p1", at(120), at(20))).toBe(true);
      expect(await leases.renew("reaper", "p2", at(500))).toBe(false);
      expect(await leases.renew("reaper", "p1", at(200))).toBe(true);
      expect(await leases.take("reaper", "p2", at(299), at(199))).toBe(false);
      expect(await leases.take("reaper", "p2", at(300), at(200))).toBe(true);
      expect(await leases.renew("reaper", "p1", at(400))).toBe(false);
      await leases.release("reaper", "p1");
      expect(await leases.take("reaper", "p1", at(310), at(210))).toBe(false);
      await leases.release("reaper", "p2");
      expect(await leases.take("reaper", "p1", at(310), at(210))).toBe(true);
    });

    test("says when one ends, and forgets those that have ended", async () => {
      await using opened = await open();
      const { leases } = opened.store;
      await leases.take("old", "p1", at(100), at(0));
      await leases.take("new", "p1", at(200), at(0));
      expect(await leases.endOf("old")).toEqual(at(100));
      await leases.forgetEnded(at(150));
      expect([await leases.endOf("old"), await leases.endOf("new")]).toEqual([undefined, at(200)]);
    });

    test("one that was taken before the clock went back binds nobody", async () => {
      await using opened = await open();
      const { leases } = opened.store;
      await leases.take("reaper", "p1", at(1_000_000), at(999_900));
      expect(await leases.take("reaper", "p2", at(100), at(0))).toBe(true);
      expect(await leases.renew("reaper", "p1", at(100))).toBe(false);
    });
  });

  agentSessionsContract(name, open);

  describe(`${name} evidence heads`, () => {
    test("a head advances and stays as it was when the append fails", async () => {
      await using opened = await open();
      const { evidence } = opened.store;
      await evidence.advance("aaaa", (head) => {
        expect(head).toBeUndefined();
        return { seq: 1, hash: "h1", bytes: 10 };
      });
      await evidence.advance("aaaa", (head) => ({ seq: (head?.seq ?? 0) + 1, hash: "h2", bytes: 20 }));
      await evidence.advance("bbbb", () => undefined);
      const failing = evidence.advance("aaaa", () => {
        throw new Error("no space");
      });
      await expect(failing).rejects.toThrow("no space");
      expect(await evidence.get("aaaa")).toEqual({ seq: 2, hash: "h2", bytes: 20 });
      expect(await evidence.ids()).toEqual(["aaaa"]);
    });
  });
}

export function run(sandboxId: string): RunRow {
  return {
    sandboxId,
    status: "pending",
    task: "a.py",
    execId: undefined,
    autoDestroy: true,
    startedAt: undefined,
    completedAt: undefined,
  };
}

export function claim(sandboxId: string, holder: string, untilMs: number) {
  return { sandboxId, holder, purpose: "launch" as const, until: new Date(START + untilMs) };
}
