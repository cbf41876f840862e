import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { tierBed } from "../../../test/tier/tier-bed.ts";
import type { ClaimPurpose } from "../store/store.ts";

type Bed = ReturnType<typeof tierBed>;

describe("an end that its process did not live to finish", () => {
  test.each(["destroy", "reconcile"] as const)(
    "S2-65 an object that is still there is counted when a %s removes it",
    async (how) => {
      await using bed = tierBed();
      const id = await bed.stopped("cold");
      await bed.store.sandboxes.transition(
        id,
        "stopped",
        "deleted",
        { tier: "gone" },
        { garbage_collected: 1 },
      );
      await leaveClaim(bed, id, "collect");
      await (how === "destroy" ? bed.sandboxes.destroy(id) : bed.sandboxes.reconcile());
      expect(bed.snapshots.objects.size).toBe(0);
      expect(await bed.store.counters.read()).toMatchObject({ garbage_collected: 1, gc_s3_cleaned: 1 });
    },
  );

  test("one that somebody has resumed since it was looked at is not removed", async () => {
    await using bed = tierBed();
    const id = await bed.stopped("cold");
    await bed.sandboxes.start(id);
    await leaveClaim(bed, id, "collect");
    await bed.sandboxes.reconcile();
    expect(await bed.record(id)).toMatchObject({ state: "running" });
    expect(await bed.read(id)).toBe(`files of ${id}`);
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("S2-61 of a lifetime is counted once, and not when more time was given", async () => {
    await using bed = tierBed();
    const [over, longer] = [await bed.sandboxes.create({ ttlMs: 1000 }), await bed.sandboxes.create({})];
    for (const { id } of [over, longer]) await leaveClaim(bed, id, "expire");
    await bed.driver.remove(over.id);
    await bed.clock.advance(1000);
    for (let again = 0; again < 2; again++) await bed.sandboxes.reconcile();
    expect(await bed.record(over.id)).toMatchObject({ state: "deleted", endReason: "timeout" });
    expect(await bed.record(longer.id)).toMatchObject({ state: "running" });
    expect(await bed.store.counters.read()).toMatchObject({ reaped_lifetime: 1 });
  });

  test("S0-87 of a run's lifetime keeps its results", async () => {
    await using bed = tierBed();
    const { id } = await bed.sandboxes.create({ ttlMs: 1000 });
    const row = { status: "running", task: "a.py", autoDestroy: true } as const;
    const none = { execId: undefined, startedAt: undefined, completedAt: undefined };
    await bed.store.runs.put({ sandboxId: id, ...row, ...none });
    await leaveClaim(bed, id, "expire");
    await bed.driver.remove(id);
    await bed.clock.advance(1000);
    await bed.sandboxes.reconcile();
    expect(await bed.record(id)).toMatchObject({ state: "stopped", endReason: "timeout" });
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(true);
    expect(await bed.store.counters.read()).toMatchObject({ reaped_lifetime: 0 });
  });

  test("S2-59 of an idle stop is one for want of use, unless it runs on", async () => {
    await using bed = tierBed();
    const [stopped, runs] = [await bed.sandboxes.create({}), await bed.sandboxes.create({})];
    for (const { id } of [stopped, runs]) await leaveClaim(bed, id, "idle");
    await bed.driver.stop(stopped.id, 0);
    for (let again = 0; again < 2; again++) await bed.sandboxes.reconcile();
    expect(await bed.record(stopped.id)).toMatchObject({ state: "stopped", endReason: "idle" });
    expect(await bed.record(runs.id)).toMatchObject({ state: "running", stoppedAt: undefined });
    expect(await bed.store.counters.read()).toMatchObject({ reaped_idle: 1 });
  });
});

async function leaveClaim(bed: Bed, sandboxId: string, purpose: ClaimPurpose): Promise<void> {
  bed.dead.add("p9");
  const until = new Date(bed.clock.now().getTime() + 60_000);
  await bed.store.claims.take({ sandboxId, holder: "p9#1", purpose, until }, bed.clock.now());
}
