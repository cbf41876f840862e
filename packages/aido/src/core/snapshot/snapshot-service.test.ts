import { expect, test } from "vitest";
import { MemoryObjects } from "../../../test/objects/memory-objects.ts";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { SandboxReaper } from "../reaper/reaper.ts";
import { snapshotFirst } from "../reaper/snapshot-first.ts";
import { TierCollector } from "../tier/collector.ts";
import { StoredSnapshots } from "../tier/stored-snapshots.ts";
import { SnapshotService } from "./snapshot-service.ts";

const IDLE = { idleTimeoutMs: 60_000 };

/** Sandboxes with one file and snapshots of them, all in memory. */
function snapshotBed() {
  const memory = new MemoryObjects();
  const tiers = { snapshots: new StoredSnapshots(() => snapshots, true), autoCommit: false };
  const bed = sandboxBed({ tiers });
  const snapshots = new SnapshotService({
    ...bed.shared,
    ...{ stores: memory.stores, prefix: memory.prefix, maxBytes: 0, sandboxes: bed.sandboxes },
  });
  const reaper = new SandboxReaper({
    ...bed.shared,
    sandboxes: bed.sandboxes,
    runningExecs: (record) => bed.execs.running(record),
    busyCpus: 0,
    snapshot: snapshotFirst(snapshots),
  });
  return Object.assign(bed, {
    memory,
    snapshots,
    urls: () => [...memory.objects.keys()],
    record: (id: string) => bed.store.sandboxes.get(id),
    async made(request = {}): Promise<string> {
      const { id } = await bed.sandboxes.create(request);
      await bed.driver.files(id).writeFile("/work", "kept", `files of ${id}`);
      return id;
    },
    async reap() {
      const reaping = reaper.reap();
      await passUntil(bed, reaping);
      return await reaping;
    },
  });
}

test("a snapshot in the operator's place is counted and goes with its sandbox; one in a user's place stays", async () => {
  await using bed = snapshotBed();
  const id = await bed.made();
  const taken = await bed.snapshots.take(id);
  const users = await bed.snapshots.take(id, { destination: "s3://user/mine.tar.gz" });
  expect(taken.url).toBe(`s3://operator/${id}/snapshot.tar.gz`);
  expect(bed.urls()).toEqual([taken.url, users.url]);
  expect(await bed.record(id)).toMatchObject({
    snapshotUrl: taken.url,
    snapshotSha256: taken.sha256,
    snapshotIsStale: true,
  });
  expect(await bed.store.counters.read()).toMatchObject({ snapshots_uploaded: 2 });
  await bed.sandboxes.destroy(id);
  expect(bed.urls()).toEqual([users.url]);
  expect(await bed.record(id)).toMatchObject({ tier: undefined, snapshotUrl: undefined });
});

test("a snapshot without the workspace is nothing to come back from, and goes with its sandbox too", async () => {
  await using bed = snapshotBed();
  const id = await bed.made();
  await bed.driver.files(id).writeFile("/var/lib/sidecar", "state", "x");
  await bed.snapshots.take(id);
  await bed.snapshots.take(id, { includeWorkspace: false, includeState: true });
  expect(await bed.record(id)).toMatchObject({ snapshotSha256: undefined });
  await bed.sandboxes.destroy(id);
  expect(bed.urls()).toEqual([]);
});

test("a sandbox that is destroyed while its snapshot is taken leaves no object", async () => {
  await using bed = snapshotBed();
  const id = await bed.made();
  bed.memory.during = () => bed.process("p2").destroy(id);
  await expect(bed.snapshots.take(id)).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
  expect(bed.urls()).toEqual([]);
  expect(await bed.record(id)).toMatchObject({ state: "deleted", snapshotUrl: undefined });
  const other = await bed.made(IDLE);
  await bed.clock.advance(120_000);
  bed.memory.during = () => bed.process("p3").destroy(other);
  await bed.reap();
  expect(bed.urls()).toEqual([]);
  expect(await bed.record(other)).toMatchObject({ state: "deleted", snapshotUrl: undefined });
});

test("what was uploaded before an idle stop is what the sandbox holds only if the stop follows", async () => {
  await using bed = snapshotBed();
  const id = await bed.made(IDLE);
  await bed.clock.advance(120_000);
  bed.memory.during = () => bed.store.sandboxes.touch([id], bed.clock.now());
  expect(await bed.reap()).toMatchObject({ idle: [], busy: [id] });
  expect(await bed.record(id)).toMatchObject({ state: "running", snapshotIsStale: true });
  bed.memory.during = async () => undefined;
  await bed.clock.advance(120_000);
  expect(await bed.reap()).toMatchObject({ idle: [id], busy: [] });
  expect(await bed.record(id)).toMatchObject({ state: "stopped", snapshotIsStale: false });
  expect(await bed.store.counters.read()).toMatchObject({ snapshots_uploaded: 2, reaped_idle: 1 });
});

test("sandboxes whose owner names the same destination for all of them have an object each", async () => {
  await using bed = snapshotBed();
  const request = { ...IDLE, snapshotDestination: "s3://user/batch" };
  const ids = [await bed.made(request), await bed.made(request)];
  await bed.clock.advance(120_000);
  expect((await bed.reap()).idle.toSorted()).toEqual(ids);
  expect(bed.urls().toSorted()).toEqual(ids.map((id) => expect.stringContaining(`s3://user/batch/${id}/`)));
  for (const id of ids) {
    await bed.driver.remove(id);
    await bed.sandboxes.start(id);
    expect(String(await bed.driver.files(id).readFile("/work", "kept"))).toBe(`files of ${id}`);
    await bed.sandboxes.destroy(id);
  }
  expect(bed.urls()).toHaveLength(2);
});

test.each(["is gone", "is cut short"])(
  "an object that %s after its upload does not take the image's place",
  async (how) => {
    await using bed = snapshotBed();
    const collector = new TierCollector(bed.depsOf("p1"), { hotMs: 0, warmMs: 0, coldMs: 60_000 });
    const id = await bed.made({ snapshotDestination: "s3://user/mine" });
    await bed.sandboxes.stop(id);
    expect(await collector.collect()).toMatchObject({ warmed: [id] });
    bed.memory.during = async () => {
      const [url = ""] = bed.urls();
      if (how === "is gone") bed.memory.objects.clear();
      else bed.memory.objects.set(url, Buffer.from("cut"));
    };
    expect(await collector.collect()).toMatchObject({ cooled: [], failed: [{ id, code: "OBJECT_BROKEN" }] });
    expect(await bed.record(id)).toMatchObject({ state: "stopped", tier: "warm" });
    bed.memory.during = async () => undefined;
    expect(await collector.collect()).toMatchObject({ cooled: [id], failed: [] });
    await bed.sandboxes.start(id);
    expect(String(await bed.driver.files(id).readFile("/work", "kept"))).toBe(`files of ${id}`);
  },
);

test("beneath the operator's prefix a sandbox has one object", async () => {
  await using bed = snapshotBed();
  const id = await bed.made();
  for (const destination of [`s3://operator/${id}/other.tar.gz`, `s3://operator/${id}/`, "s3://operator/"]) {
    const taking = bed.snapshots.take(id, { destination });
    if (destination === "s3://operator/") await taking;
    else await expect(taking).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
  }
  expect(bed.urls()).toEqual([bed.snapshots.placeOf({ id, snapshotDestination: undefined })]);
});
