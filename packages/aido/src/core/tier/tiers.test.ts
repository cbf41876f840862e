import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { DAY_MS, RETENTIONS, tierBed } from "../../../test/tier/tier-bed.ts";
import { OWNER_LABEL } from "../access/owner-label.ts";
import { TierCollector } from "./collector.ts";

describe("tiers", () => {
  test("S2-15 S2-16 S2-48 S2-50 S2-52 S2-53 S2-63 S2-64 S2-65 a stopped sandbox sinks step by step, each after its retention", async () => {
    await using bed = tierBed();
    const id = await bed.stopped();
    const tier = async () => (await bed.record(id))?.tier;
    expect(await bed.record(id)).toMatchObject({ state: "stopped", tier: "hot", tierSince: bed.clock.now() });
    await bed.clock.advance(DAY_MS - 1);
    expect(await bed.gc.collect()).toEqual({ warmed: [], cooled: [], removed: [], failed: [] });
    await bed.clock.advance(1);
    expect(await bed.gc.collect({ dryRun: true })).toMatchObject({ warmed: [id] });
    expect(await tier()).toBe("hot");
    expect(await bed.gc.collect()).toMatchObject({ warmed: [id] });
    expect(await tier()).toBe("warm");
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.images()).toHaveLength(1);
    await bed.clock.advance(2 * DAY_MS);
    expect(await bed.gc.collect()).toMatchObject({ cooled: [id], warmed: [], removed: [] });
    expect(await tier()).toBe("cold");
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.images()).toEqual([]);
    expect(bed.snapshots.objects.size).toBe(1);
    await bed.clock.advance(7 * DAY_MS);
    expect(await bed.gc.collect()).toMatchObject({ removed: [id] });
    expect(await bed.record(id)).toMatchObject({ state: "deleted", tier: undefined, snapshotUrl: undefined });
    expect(bed.snapshots.objects.size).toBe(0);
    expect(await bed.events(id)).toEqual(
      expect.arrayContaining(["tier.warm", "tier.cold", "sandbox.destroyed"]),
    );
    expect(await bed.evidenceOk(id)).toBe(true);
    expect(await bed.store.counters.read()).toMatchObject({
      snapshots_committed: 1,
      gc_containers_removed: 1,
      snapshots_uploaded: 1,
      gc_images_removed: 1,
      gc_s3_cleaned: 1,
      garbage_collected: 1,
    });
  });

  test.each(["hot", "warm", "cold"] as const)(
    "S2-54 S2-55 S2-56 from %s it comes back with its files, id and token",
    async (tier) => {
      await using bed = tierBed();
      const id = await bed.stopped(tier);
      const before = await bed.record(id);
      expect(before?.tier).toBe(tier);
      expect(await bed.sandboxes.start(id)).toMatchObject({ id, state: "running", tier: undefined });
      expect(await bed.read(id)).toBe(`files of ${id}`);
      expect((await bed.record(id))?.supervisorToken).toBe(before?.supervisorToken);
      // What was kept is of before the start now, and goes round again.
      await bed.driver.files(id).writeFile("/work", "kept", "changed");
      await bed.sandboxes.stop(id);
      await bed.clock.advance(DAY_MS);
      expect(await bed.gc.collect()).toMatchObject({ warmed: [id], failed: [] });
      expect(await bed.images()).toHaveLength(1);
      await bed.clock.advance(2 * DAY_MS);
      expect(await bed.gc.collect()).toMatchObject({ cooled: [id], failed: [] });
      await bed.sandboxes.start(id);
      expect(await bed.read(id)).toBe("changed");
    },
  );

  test.each(["hot", "warm", "cold"] as const)(
    "a sandbox is destroyed in tier %s with all that it had",
    async (tier) => {
      await using bed = tierBed({ autoCommit: true });
      const id = await bed.stopped(tier);
      await bed.sandboxes.destroy(id);
      expect(await bed.record(id)).toMatchObject({ state: "deleted", tier: undefined });
      expect(await bed.driver.list()).toEqual([]);
      expect(await bed.images()).toEqual([]);
      expect(bed.snapshots.objects.size).toBe(0);
      expect(await bed.store.counters.read()).toMatchObject({ garbage_collected: 0, gc_s3_cleaned: 0 });
    },
  );

  test("S2-18 S2-51 S2-121 a stop makes the image early when that is set, and the container stays", async () => {
    await using bed = tierBed({ autoCommit: true });
    const id = await bed.stopped();
    expect(await bed.record(id)).toMatchObject({ tier: "hot", warmIsStale: false });
    expect(await bed.images()).toEqual([(await bed.record(id))?.warmImage]);
    expect(await bed.driver.list()).toHaveLength(1);
    await bed.clock.advance(DAY_MS);
    await bed.gc.collect();
    expect(await bed.store.counters.read()).toMatchObject({
      snapshots_committed: 1,
      gc_containers_removed: 1,
    });
  });

  test("S2-121 when nothing is said, it is made for sidecar sandboxes alone", async () => {
    await using bed = tierBed();
    await bed.stopped("hot", { profile: "aido" });
    expect(await bed.images()).toEqual([]);
    const { id } = await bed.sandboxes.create({ profile: "sidecar" });
    await bed.sandboxes.stop(id);
    expect(await bed.images()).toHaveLength(1);
  });

  test("S2-66 what lies at a destination of the user's is never removed", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold", { snapshotDestination: "https://user.example/mine" });
    await bed.clock.advance(7 * DAY_MS);
    expect(await bed.gc.collect()).toMatchObject({ removed: [id] });
    expect([...bed.snapshots.objects.keys()]).toEqual(["https://user.example/mine"]);
    expect(await bed.store.counters.read()).toMatchObject({ garbage_collected: 1, gc_s3_cleaned: 0 });
    const other = await bed.stopped("cold", { snapshotDestination: "https://user.example/other" });
    await bed.sandboxes.destroy(other);
    expect(bed.snapshots.objects.size).toBe(2);
  });

  test("S2-122 without a place for snapshots a sandbox stays warm, unless it names its own", async () => {
    await using bed = tierBed();
    bed.snapshots.hasOwnPlace = false;
    const stays = await bed.stopped("warm");
    const goes = await bed.stopped("warm", { snapshotDestination: "https://user.example/mine" });
    await bed.clock.advance(9 * DAY_MS);
    expect(await bed.gc.collect()).toEqual({ warmed: [], cooled: [goes], removed: [], failed: [] });
    expect((await bed.record(stays))?.tier).toBe("warm");
    await bed.sandboxes.start(stays);
    expect(await bed.read(stays)).toBe(`files of ${stays}`);
  });
});

describe("bad days", () => {
  test("an engine that goes away during a commit leaves the sandbox as it was", async () => {
    await using bed = tierBed({ autoCommit: true });
    bed.driver.failNext("commit", new AidoError("RUNTIME_UNAVAILABLE", "Docker is not running"));
    const id = await bed.stopped();
    expect(await bed.record(id)).toMatchObject({ state: "stopped", tier: "hot", warmImage: undefined });
    bed.driver.failNext("commit", new AidoError("DISK_FULL", "No space left"));
    await bed.clock.advance(DAY_MS);
    expect(await bed.gc.collect()).toMatchObject({ warmed: [], failed: [{ id, code: "DISK_FULL" }] });
    expect((await bed.record(id))?.tier).toBe("hot");
    await bed.sandboxes.start(id);
    expect(await bed.read(id)).toBe(`files of ${id}`);
  });

  test("an upload that is cut, or a full disk, leaves the image; the next collection tries again", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("warm");
    await bed.clock.advance(2 * DAY_MS);
    bed.snapshots.failures.push(new Error("socket hang up"));
    expect(await bed.gc.collect()).toMatchObject({ cooled: [], failed: [{ id }] });
    expect(await bed.record(id)).toMatchObject({ tier: "warm", snapshotSha256: undefined });
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.images()).toHaveLength(1);
    expect(await bed.gc.collect()).toMatchObject({ cooled: [id], failed: [] });
  });

  test("S2-56 an object that was changed is refused: the sandbox stays cold, and comes back when it is right again", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    const [url = "", content = ""] = [...bed.snapshots.objects][0] ?? [];
    bed.snapshots.objects.set(url, "something else");
    await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
    expect(await bed.record(id)).toMatchObject({ state: "stopped", tier: "cold" });
    expect(await bed.driver.list()).toEqual([]);
    bed.snapshots.objects.set(url, content);
    await bed.sandboxes.start(id);
    expect(await bed.read(id)).toBe(content);
  });

  test("an image removed behind aido's back: the object is used, or the loss is told", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    await bed.sandboxes.start(id);
    await bed.sandboxes.stop(id);
    await bed.clock.advance(DAY_MS);
    await bed.gc.collect();
    for (const image of await bed.images()) await bed.driver.removeImage(image);
    await bed.sandboxes.start(id);
    expect(await bed.read(id)).toBe(`files of ${id}`);
    expect(await bed.events(id)).toContain("tier.fallback");
    const other = await bed.stopped("warm");
    for (const image of await bed.images()) await bed.driver.removeImage(image);
    await expect(bed.sandboxes.start(other)).rejects.toMatchObject({ code: "IMAGE_NOT_FOUND" });
    expect(await bed.record(other)).toMatchObject({ state: "stopped", tier: "warm" });
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test("a container removed behind aido's back: the image of the stop is used, and the collector knows", async () => {
    await using bed = tierBed({ autoCommit: true });
    const id = await bed.stopped();
    await bed.driver.remove(id);
    await bed.sandboxes.start(id);
    expect(await bed.read(id)).toBe(`files of ${id}`);
    await bed.sandboxes.stop(id);
    await bed.driver.remove(id);
    await bed.clock.advance(DAY_MS);
    expect(await bed.gc.collect()).toMatchObject({ failed: [] });
    expect((await bed.record(id))?.tier).toBe("warm");
  });

  test("a container that no longer starts gives way to its image, but never to an older one", async () => {
    await using bed = tierBed({ autoCommit: true });
    const broken = () =>
      bed.driver.failNext("start", new AidoError("CONTAINER_START_FAILED", "the layer is damaged"));
    const id = await bed.stopped();
    broken();
    await bed.sandboxes.start(id);
    expect(await bed.read(id)).toBe(`files of ${id}`);
    bed.driver.failNext("commit", new Error("no"));
    await bed.sandboxes.stop(id);
    broken();
    await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "CONTAINER_START_FAILED" });
    expect(await bed.record(id)).toMatchObject({ tier: "hot" });
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test("two resumes at once: one does it, the other is told, and there is one container", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("warm");
    const other = bed.process("p2");
    const results = await Promise.allSettled([bed.sandboxes.start(id), other.start(id)]);
    const refused = results.filter((result) => result.status === "rejected");
    for (const { reason } of refused) expect(reason).toMatchObject({ code: "CONTAINER_BUSY" });
    expect(refused.length).toBeLessThan(2);
    expect(await bed.driver.list()).toHaveLength(1);
    expect(await bed.read(id)).toBe(`files of ${id}`);
  });

  test("a destroy during a resume wins, and nothing is left", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    bed.snapshots.during = async () => {
      bed.snapshots.during = async () => undefined;
      await bed.process("p2").destroy(id);
    };
    await expect(bed.sandboxes.start(id)).rejects.toThrow();
    expect(await bed.record(id)).toMatchObject({ state: "deleted" });
    expect(await bed.driver.list()).toEqual([]);
    expect(bed.snapshots.objects.size).toBe(0);
  });

  test("a destroy during an upload wins, and nothing is left", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("warm");
    await bed.clock.advance(2 * DAY_MS);
    bed.snapshots.during = () => bed.process("p2").destroy(id);
    expect(await bed.gc.collect()).toMatchObject({ cooled: [] });
    expect(await bed.record(id)).toMatchObject({ state: "deleted" });
    expect([await bed.driver.list(), await bed.images(), bed.snapshots.objects.size]).toEqual([[], [], 0]);
  });

  test("a resume waits for a collection that is at the sandbox", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("warm");
    await bed.clock.advance(2 * DAY_MS);
    let start: Promise<unknown> | undefined;
    bed.snapshots.during = async () => {
      bed.snapshots.during = async () => undefined;
      start = bed.process("p2").start(id);
    };
    expect(await bed.gc.collect()).toMatchObject({ cooled: [id] });
    await bed.clock.advance(1000);
    expect(await start).toMatchObject({ state: "running" });
    expect(await bed.read(id)).toBe(`files of ${id}`);
  });

  test("an object store that is away does not keep a sandbox from its end; the next collection clears up", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    bed.snapshots.failures.push(new Error("503"));
    await bed.sandboxes.destroy(id);
    expect(await bed.record(id)).toMatchObject({ state: "deleted", tier: "gone" });
    expect(await bed.gc.collect()).toMatchObject({ removed: [id] });
    expect(await bed.record(id)).toMatchObject({ tier: undefined });
    expect(bed.snapshots.objects.size).toBe(0);
  });

  test("a destination that a user has named and that takes no end keeps nobody else waiting", async () => {
    await using bed = tierBed();
    const to = (owner: string, place: string) => ({
      labels: { [OWNER_LABEL]: owner },
      snapshotDestination: `https://${place}.example/x`,
    });
    const stuck: string[] = [];
    for (let count = 0; count < 5; count += 1) stuck.push(await bed.stopped("hot", to("ada", "slow")));
    const [fine, ours] = [await bed.stopped("hot", to("bob", "fast")), await bed.stopped("hot")];
    await bed.clock.advance(DAY_MS);
    expect((await bed.gc.collect()).warmed).toHaveLength(7);
    await bed.clock.advance(2 * DAY_MS);
    let asked = 0;
    let end: (reason: Error) => void = () => undefined;
    bed.snapshots.during = async ({ snapshotDestination }) => {
      if (snapshotDestination?.includes("slow") !== true) return;
      asked += 1;
      await new Promise((_, reject) => {
        end = reject;
      });
    };
    const both = bed.gc.collect();
    await expect.poll(async () => (await bed.record(fine))?.tier).toBe("cold");
    await expect.poll(async () => (await bed.record(ours))?.tier).toBe("cold");
    const next = await bed.stopped("hot");
    await bed.clock.advance(DAY_MS);
    expect(await bed.gc.collect({ only: "ours" })).toMatchObject({ warmed: [next] });
    for (const count of [1, 2, 3]) {
      await expect.poll(() => asked).toBe(count);
      end(new AidoError("DEADLINE_EXCEEDED", "too slow"));
    }
    // Its owner has had its time in this collection.
    expect(await both).toMatchObject({ failed: stuck.slice(0, 3).map((id) => ({ id })) });
    expect((await bed.record(stuck[0] ?? ""))?.tier).toBe("warm");
  });

  test("a clock that is set ahead removes nothing that is cold; what is due an hour later goes", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    bed.clock.set(new Date(bed.clock.now().getTime() + 30 * DAY_MS));
    expect((await bed.gc.collect({ dryRun: true })).removed).toEqual([]);
    expect((await bed.gc.collect()).removed).toEqual([]);
    await bed.clock.advance(30 * 60_000);
    expect((await bed.gc.collect()).removed).toEqual([]);
    await bed.clock.advance(30 * 60_000);
    expect((await bed.gc.collect()).removed).toEqual([id]);
  });

  test("S2-62 two servers at once move each sandbox once; thousands are taken in pages", async () => {
    await using bed = tierBed();
    const ids: string[] = [];
    for (let count = 0; count < 230; count++) ids.push(await bed.stopped());
    await bed.clock.advance(DAY_MS);
    const [one, other] = await Promise.all([bed.gc.collect(), bed.collectorOf("p2").collect()]);
    expect([...one.warmed, ...other.warmed].sort()).toEqual(ids.sort());
    expect([...one.failed, ...other.failed]).toEqual([]);
    expect(await bed.store.counters.read()).toMatchObject({ gc_containers_removed: 230 });
  });

  test("S2-62 S2-65 10,000 that are due are dealt with in one collection, in pages", {
    timeout: 60_000,
  }, async () => {
    await using bed = tierBed();
    const since = { state: "stopped", tier: "cold", tierSince: bed.clock.now() } as const;
    for (let index = 0; index < 10_000; index++) {
      await bed.store.sandboxes.insert(sandboxRecord(`s${index}`, since));
    }
    let most = 0;
    const { sandboxes } = bed.store;
    const due = sandboxes.dueForDemotion.bind(sandboxes);
    sandboxes.dueForDemotion = async (query) => {
      const page = await due(query);
      most = Math.max(most, page.length);
      return page;
    };
    await bed.clock.advance(7 * DAY_MS);
    const evidence = {
      append: async () => undefined,
      appendSoon: () => undefined,
      archive: async () => undefined,
    };
    const collector = new TierCollector({ ...bed.depsOf("p1"), evidence }, RETENTIONS);
    const { removed, failed } = await collector.collect();
    expect([removed.length, new Set(removed).size, failed.length]).toEqual([10_000, 10_000, 0]);
    expect(most).toBeLessThanOrEqual(1000);
    expect(await bed.store.sandboxes.list()).toEqual([]);
    expect(await bed.store.counters.read()).toMatchObject({ garbage_collected: 10_000 });
  });
});
