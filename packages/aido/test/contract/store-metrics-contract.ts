import { describe, expect, test } from "vitest";
import { START, type StoreUnderTest, sandboxRecord } from "./records.ts";

/** The part of the stores' contract about what is counted. */
export function storeMetricsContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} counters`, () => {
    test("S2-78 S2-81 S2-82 begin at 0, add up, and all of one step count together", async () => {
      await using opened = await open();
      const { counters } = opened.store;
      expect(Object.values(await counters.read())).toEqual(Array.from({ length: 13 }, () => 0));
      await counters.add({ reaped_idle: 1, gc_images_removed: 2 });
      await counters.add({ reaped_idle: 1, total_duration_ms: 2.6 });
      await counters.add({});
      expect(await counters.read()).toMatchObject({
        reaped_idle: 2,
        gc_images_removed: 2,
        total_duration_ms: 3,
        total_jobs: 0,
      });
    });

    test("S2-81 a change of a sandbox is counted with it, and one that comes too late is not", async () => {
      await using opened = await open();
      const { counters, sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa", { state: "running" }));
      expect(await sandboxes.transition("aaaa", "running", "stopped", {}, { reaped_idle: 1 })).toBe(true);
      expect(await sandboxes.transition("aaaa", "running", "stopped", {}, { reaped_idle: 1 })).toBe(false);
      await sandboxes.update("aaaa", { containerId: undefined }, { gc_containers_removed: 1 });
      await sandboxes.update("nobody", { containerId: undefined }, { gc_containers_removed: 1 });
      await sandboxes.remove("aaaa", { garbage_collected: 1 });
      await sandboxes.remove("aaaa", { garbage_collected: 1 });
      expect(await counters.read()).toMatchObject({
        reaped_idle: 1,
        gc_containers_removed: 1,
        garbage_collected: 1,
      });
    });

    test("S2-79 totals are those of what runs, and the peak stays", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      expect(await sandboxes.totals()).toEqual({ active: 0, peak: 0, cpus: 0, memoryBytes: 0 });
      const limits = { ...sandboxRecord("x").limits, cpus: 1.5, memoryBytes: 1000 };
      await sandboxes.insert(sandboxRecord("aaaa", { limits, state: "running" }));
      await sandboxes.insert(sandboxRecord("bbbb", { limits }));
      expect(await sandboxes.totals()).toEqual({ active: 1, peak: 1, cpus: 1.5, memoryBytes: 1000 });
      await sandboxes.transition("bbbb", "pending", "running");
      expect(await sandboxes.totals()).toEqual({ active: 2, peak: 2, cpus: 3, memoryBytes: 2000 });
      await sandboxes.transition("aaaa", "running", "stopped");
      await sandboxes.remove("bbbb");
      await sandboxes.transition("aaaa", "stopped", "running");
      expect(await sandboxes.totals()).toEqual({ active: 1, peak: 2, cpus: 1.5, memoryBytes: 1000 });
    });
  });

  describe(`${name} jobs`, () => {
    test("S2-78 a job is counted when it ends, once", async () => {
      await using opened = await open();
      const { counters, jobs } = opened.store;
      const job = { id: "j1", job: 10, holder: "p1", startedAt: new Date(START) };
      await jobs.begin(job);
      expect(await jobs.list()).toEqual([job]);
      expect(await counters.read()).toMatchObject({ total_jobs: 0 });
      expect(await jobs.end("j1", { total_jobs: 1, failed_jobs: 1 })).toBe(true);
      expect(await jobs.end("j1", { total_jobs: 1 })).toBe(false);
      expect(await jobs.list()).toEqual([]);
      expect(await counters.read()).toMatchObject({ total_jobs: 1, failed_jobs: 1 });
    });
  });
}
