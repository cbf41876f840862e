import { describe, expect, test } from "vitest";
import { START, type StoreUnderTest, sandboxRecord } from "./records.ts";

export function storeTierContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name}: tiers`, () => {
    test("S2-62 those due for demotion come by tier, longest first, page after page", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const at = (ms: number) => new Date(START + ms);
      const stopped = (tier: "hot" | "warm", ms: number) =>
        ({ state: "stopped", tier, tierSince: at(ms) }) as const;
      await sandboxes.insert(sandboxRecord("b", stopped("hot", 10)));
      await sandboxes.insert(sandboxRecord("a", stopped("hot", 10)));
      await sandboxes.insert(sandboxRecord("first", stopped("hot", 5)));
      await sandboxes.insert(sandboxRecord("late", stopped("hot", 11)));
      await sandboxes.insert(sandboxRecord("warm", stopped("warm", 1)));
      await sandboxes.insert(
        sandboxRecord("own", { ...stopped("warm", 2), snapshotDestination: "s3://x/y" }),
      );
      await sandboxes.insert(sandboxRecord("runs", { state: "running" }));
      await sandboxes.insert(sandboxRecord("left", { state: "deleted", tier: "gone", tierSince: at(1) }));
      const ids = async (query: Parameters<typeof sandboxes.dueForDemotion>[0]) =>
        (await sandboxes.dueForDemotion(query)).map((record) => record.id);
      const hot = { tier: "hot", since: at(10) } as const;
      expect(await ids({ ...hot, limit: 10 })).toEqual(["first", "a", "b"]);
      expect(await ids({ ...hot, limit: 2 })).toEqual(["first", "a"]);
      expect(await ids({ ...hot, limit: 2, after: { id: "a", tierSince: at(10) } })).toEqual(["b"]);
      expect(await ids({ tier: "warm", since: at(10), limit: 10 })).toEqual(["warm", "own"]);
      expect(await ids({ tier: "warm", since: at(10), limit: 10, ownDestination: true })).toEqual(["own"]);
      expect(await ids({ tier: "gone", since: at(10), limit: 10 })).toEqual(["left"]);
      await sandboxes.transition("first", "stopped", "running", { tier: undefined, tierSince: undefined });
      expect(await ids({ ...hot, limit: 10 })).toEqual(["a", "b"]);
    });
  });
}
