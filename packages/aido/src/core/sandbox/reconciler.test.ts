import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

describe("before a status is shown", () => {
  test.each([
    [{ exitCode: 124 }, "timeout"],
    [{ exitCode: 137, outOfMemory: true }, "out_of_memory"],
    [{ exitCode: 0 }, "stopped"],
    [{ exitCode: 137 }, "lost"],
  ] as const)("a container that ended with %o is a sandbox stopped by %s", async (how, reason) => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    bed.driver.crash(id, how);
    expect(await bed.sandboxes.list()).toMatchObject([{ id, state: "stopped", endReason: reason }]);
    expect(await bed.sandboxes.get(id)).toMatchObject({ endReason: reason, stoppedAt: bed.clock.now() });
    expect((await bed.events(id)).filter((event) => event === "sandbox.stopped")).toHaveLength(1);
  });

  test("a run that ended tells why its sandbox did", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.store.runs.put(runRow(id, "completed"));
    bed.driver.crash(id, { exitCode: 0 });
    expect(await bed.sandboxes.get(id)).toMatchObject({ endReason: "completed" });
  });

  test("S0-77 a sandbox whose ttl is over is gone, and says so", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ ttlMs: 1000 });
    await bed.clock.advance(1000);
    expect(await bed.sandboxes.list()).toEqual([]);
    expect(await bed.driver.list()).toEqual([]);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(false);
    await expect(bed.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
    expect((await bed.events(id)).slice(-2)).toEqual(["sandbox.expired", "sandbox.destroyed"]);
  });

  test("S0-77 S0-87 a run whose ttl is over loses its container and keeps its results", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({ ttlMs: 1000 });
    await bed.store.runs.put(runRow(id, "running"));
    await bed.sandboxes.launch(id);
    await bed.clock.advance(1000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "timeout" });
    expect(await bed.driver.list()).toEqual([]);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(true);
    expect(await bed.sandboxes.expire()).toBe(0);
  });

  test("expire ends what is due and nothing else", async () => {
    await using bed = sandboxBed();
    const due = await bed.sandboxes.create({ ttlMs: 1000 });
    const later = await bed.sandboxes.create({ ttlMs: 5000 });
    const ever = await bed.sandboxes.create({});
    await bed.clock.advance(2000);
    expect(await bed.sandboxes.expire()).toBe(1);
    expect((await bed.sandboxes.list()).map(({ id }) => id)).toEqual([ever.id, later.id]);
    expect(await bed.store.sandboxes.get(due.id)).toMatchObject({ state: "deleted", endReason: "timeout" });
  });

  test("containers without a record are left alone", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.store.sandboxes.remove(id);
    await bed.sandboxes.reconcile();
    expect(await bed.driver.list()).toMatchObject([{ sandboxId: id, state: "running" }]);
  });

  test("a container that outlived the destruction of its sandbox is removed, whether it was ever started or not", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.store.sandboxes.transition(id, "running", "deleted");
    const exited = await bed.sandboxes.create({});
    await bed.sandboxes.stop(exited.id);
    await bed.store.sandboxes.transition(exited.id, "stopped", "deleted");
    const created = await bed.sandboxes.prepare({});
    await bed.driver.create({ ...created, sandboxId: created.id, name: created.id, user: undefined });
    await bed.store.sandboxes.transition(created.id, "pending", "deleted");
    await bed.sandboxes.reconcile();
    expect(await bed.driver.list()).toEqual([]);
  });

  test("a sandbox that was given more time after it was seen to be due is left alone", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ ttlMs: 1000 });
    await bed.clock.advance(900);
    const [due] = await bed.store.sandboxes.due(new Date(bed.clock.now().getTime() + 1000), 10);
    await bed.sandboxes.setTtl(id, 60_000);
    await bed.clock.advance(200);
    if (due === undefined) throw new Error("not due");
    expect(await bed.sandboxes.expireOne(due)).toBe(false);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    expect(await bed.events(id)).not.toContain("sandbox.expired");
  });
});

describe("what a dead process left half done", () => {
  test("a create is undone when its process has died", async () => {
    await using bed = sandboxBed();
    const { id, wasStarted } = await half(bed, "create");
    expect(wasStarted).toBe(true);
    await bed.sandboxes.reconcile();
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "deleted", endReason: "failed" });
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(false);
    expect(await bed.events(id)).toContain("sandbox.failed");
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("a process that cannot be asked counts as dead after a minute of silence", async () => {
    await using bed = sandboxBed();
    const { id } = await half(bed, "create", { isDead: false });
    await bed.sandboxes.reconcile();
    expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "pending" });
    await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "CONTAINER_BUSY" });
    await bed.clock.advance(61_000);
    await bed.sandboxes.reconcile();
    expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "deleted" });
  });

  test("a prepared sandbox whose launch died keeps its directory and can be launched again", async () => {
    await using bed = sandboxBed();
    const { id } = await half(bed, "launch");
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "failed" });
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.sandboxes.launch(id)).toMatchObject({ state: "running" });
  });

  test("a destroy is finished", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.driver.remove(id);
    await bed.store.sandboxes.transition(id, "running", "deleted");
    await claimOf(bed, id, "destroy");
    await bed.sandboxes.reconcile();
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(false);
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("a start of a stopped sandbox is undone without losing its files", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.stop(id);
    await bed.driver.start(id);
    await claimOf(bed, id, "launch");
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped" });
    expect(await bed.driver.list()).toMatchObject([{ state: "exited" }]);
    expect(await bed.sandboxes.start(id)).toMatchObject({ state: "running" });
  });

  test("a prepared sandbox that nobody works on stays", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({});
    await bed.clock.advance(86_400_000);
    await bed.sandboxes.reconcile();
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "pending" });
  });

  test("a claim without a record is dropped", async () => {
    await using bed = sandboxBed();
    await claimOf(bed, "nothing", "create");
    await bed.sandboxes.reconcile();
    expect(await bed.store.claims.list()).toEqual([]);
  });
});

type Bed = ReturnType<typeof sandboxBed>;

/** As a process leaves it that is killed after its container has started and before the record says so. */
async function half(bed: Bed, purpose: "create" | "launch", options = { isDead: true }) {
  const { id } = await bed.sandboxes.prepare({});
  const record = await bed.store.sandboxes.get(id);
  if (record === undefined) throw new Error("not prepared");
  await bed.driver.create({ ...sandboxRecord(id), sandboxId: id, name: id, user: undefined });
  await bed.driver.start(id);
  await claimOf(bed, id, purpose, options);
  return { id, wasStarted: (await bed.driver.inspect(id))?.state === "running" };
}

async function claimOf(
  bed: Bed,
  sandboxId: string,
  purpose: "create" | "launch" | "destroy",
  options = { isDead: true },
) {
  if (options.isDead) bed.dead.add("p9");
  const until = new Date(bed.clock.now().getTime() + 60_000);
  await bed.store.claims.take({ sandboxId, holder: "p9#1", purpose, until }, bed.clock.now());
}

function runRow(sandboxId: string, status: "running" | "completed") {
  return {
    sandboxId,
    status,
    task: "a.py",
    execId: undefined,
    autoDestroy: true,
    startedAt: undefined,
    completedAt: undefined,
  };
}
