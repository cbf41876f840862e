import { expect, test, vi } from "vitest";
import { SwarmBed } from "../testing/swarm-bed.ts";

const WAIT = { timeout: 15_000, interval: 5 };

test("of two that add a worker for the same branch at once, one is refused", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a"));
  const [b, c] = await bed.tasks("b", "c");
  if (b === undefined || c === undefined) throw new Error("no files");
  const same = { ...c, metadata: { ...c.metadata, branchName: b.metadata.branchName } };
  const added = await Promise.allSettled([b, same].map((file) => bed.begin([file], { mode: "append" })));
  const refused = added.filter(({ status }) => status === "rejected");
  expect(refused).toMatchObject([{ reason: { code: "BRANCH_IN_USE" } }]);
  expect(bed.onDisk().containers.length).toBe(2);
});

test("what cannot be added leaves a worker of that name that has ended as it is", async () => {
  using bed = new SwarmBed();
  const [a, b] = await bed.tasks("a", "b");
  if (a === undefined || b === undefined) throw new Error("no files");
  await bed.begin([a, b]);
  bed.workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-a")) worker.finish(1);
  };
  const interrupt = new AbortController();
  const driven = bed.drive({}, interrupt.signal);
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ a: "failed", b: "running" }), WAIT);
  const before = bed.entry("a");
  const same = { ...a, metadata: { ...a.metadata, branchName: b.metadata.branchName } };
  await expect(bed.begin([same], { mode: "append" })).rejects.toMatchObject({ code: "BRANCH_IN_USE" });
  expect(bed.entry("a")).toEqual(before);
  expect(bed.worker("a").containerId).toBe(before.containerId);
  interrupt.abort();
  await driven;
});

test("a worker that another has added and begun meanwhile is neither removed nor begun anew", async () => {
  using bed = new SwarmBed();
  const files = await bed.tasks("a");
  await bed.begin(files);
  const interrupt = new AbortController();
  const driven = bed.drive({}, interrupt.signal);
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ a: "running" }), WAIT);
  const { containerId } = bed.worker("a");
  await bed.begin(files, { mode: "append" });
  expect(bed.entry("a")).toMatchObject({ status: "running", containerId });
  expect(bed.worker("a").end).toBeUndefined();
  interrupt.abort();
  await driven;
});
