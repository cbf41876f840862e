import { expect, test } from "vitest";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

const SIDECAR = { profile: "sidecar", image: "any" } as const;

test("S2-68 a sidecar sandbox whose container is gone is cleaned up, running or stopped, with its evidence kept", async () => {
  await using bed = sandboxBed();
  const running = await bed.sandboxes.create(SIDECAR);
  const stopped = await bed.sandboxes.create(SIDECAR);
  await bed.sandboxes.stop(stopped.id);
  // An upload that nobody has seen the end of is nothing to come back from.
  await bed.store.sandboxes.update(stopped.id, { snapshotUrl: "file:///x", snapshotIsStale: true });
  for (const { id } of [running, stopped]) await bed.driver.remove(id);
  await bed.sandboxes.reconcile();
  await bed.sandboxes.settleAtStart();
  for (const { id } of [running, stopped]) {
    await expect(bed.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
    expect((await bed.events(id)).slice(-2)).toEqual(["sandbox.container_lost", "sandbox.destroyed"]);
    expect(await bed.evidenceOk(id)).toBe(true);
  }
  expect(await bed.store.claims.list()).toEqual([]);
});

test("S2-68 one that an image or an object holds is not lost: it is in the tier of that", async () => {
  await using bed = sandboxBed();
  const warm = await bed.sandboxes.create(SIDECAR);
  const cold = await bed.sandboxes.create(SIDECAR);
  for (const { id } of [warm, cold]) await bed.sandboxes.stop(id);
  await bed.store.sandboxes.update(warm.id, {
    warmImage: "image",
    warmIsStale: true,
    snapshotUrl: undefined,
  });
  await bed.store.sandboxes.update(cold.id, {
    warmImage: undefined,
    snapshotUrl: "file:///x",
    snapshotSha256: "00",
  });
  for (const { id } of [warm, cold]) await bed.driver.remove(id);
  await bed.sandboxes.settleAtStart();
  await bed.sandboxes.settleAtStart();
  const tierOf = async (id: string) => {
    const record = await bed.store.sandboxes.get(id);
    return { state: record?.state, tier: record?.tier, containerId: record?.containerId };
  };
  expect(await tierOf(warm.id)).toEqual({ state: "stopped", tier: "warm", containerId: undefined });
  expect(await tierOf(cold.id)).toEqual({ state: "stopped", tier: "cold", containerId: undefined });
  expect((await bed.events(warm.id)).filter((event) => event === "sandbox.container_lost")).toHaveLength(1);
});

test("a container that somebody has started is a sandbox that runs, and takes commands", async () => {
  await using bed = sandboxBed();
  const { id } = await bed.sandboxes.create(SIDECAR);
  await bed.sandboxes.stop(id);
  await bed.driver.start(id);
  await bed.sandboxes.settleAtStart();
  expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running", endReason: undefined });
  const exec = await bed.execs.start(id, { argv: ["true"] });
  expect(await bed.execs.wait(id, exec.id)).toMatchObject({ exitCode: 0 });
});

test("S2-69 containers that no record knows, ordinary sandboxes and those somebody is at are left alone", async () => {
  await using bed = sandboxBed();
  const unknown = await bed.sandboxes.create(SIDECAR);
  await bed.store.sandboxes.remove(unknown.id);
  const plain = await bed.sandboxes.create({});
  const held = await bed.sandboxes.create(SIDECAR);
  for (const { id } of [plain, held]) {
    await bed.sandboxes.stop(id);
    await bed.driver.remove(id);
  }
  const until = new Date(bed.clock.now().getTime() + 60_000);
  const claim = { sandboxId: held.id, holder: "p9#1", purpose: "launch" as const, until };
  await bed.store.claims.take(claim, bed.clock.now());
  await bed.sandboxes.settleAtStart();
  expect(await bed.driver.list()).toMatchObject([{ sandboxId: unknown.id, state: "running" }]);
  for (const { id } of [plain, held]) {
    expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "stopped" });
  }
});
