import { expect, test } from "vitest";
import { passUntil, type SandboxBed, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

/** The driver is at a stop from the moment that is waited for until it is let go. */
function holdStop(bed: SandboxBed): { begun: Promise<void>; letGo: () => void } {
  const stop = bed.driver.stop.bind(bed.driver);
  let letGo: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const begun = new Promise<void>((resolve) => {
    bed.driver.stop = async (id, graceMs) => {
      resolve();
      await gate;
      await stop(id, graceMs);
    };
  });
  return { begun, letGo };
}

test.each(["p1", "p2"])(
  "a command that comes while %s stops its sandbox wakes it, and is not lost",
  async (process) => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    const held = holdStop(bed);
    const stopper = process === "p1" ? bed.sandboxes : bed.process(process);
    const stopping = stopper.stop(id, { reason: "idle" });
    await held.begun;
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running", stoppedAt: undefined });
    const starting = bed.execs.start(id, { argv: ["true"] });
    await bed.clock.advance(1000);
    held.letGo();
    await passUntil(bed, Promise.all([stopping, starting]));
    const exec = await starting;
    expect(await bed.execs.wait(id, exec.id)).toMatchObject({ status: "exited", exitCode: 0 });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    expect((await bed.events(id)).filter((event) => event === "sandbox.stopped")).toHaveLength(1);
  },
);

test("a command that may not wake the sandbox is told how the stop ended, or that it does not end", async () => {
  await using bed = sandboxBed();
  const { id } = await bed.sandboxes.create({});
  const held = holdStop(bed);
  const stopping = bed.sandboxes.stop(id);
  await held.begun;
  const impatient = bed.execs.start(id, { argv: ["true"] }).catch((thrown: unknown) => thrown);
  await passUntil(bed, impatient);
  expect(await impatient).toMatchObject({ code: "CONTAINER_BUSY", details: { purpose: "stop" } });
  const leaves = new AbortController();
  const left = bed.execs.start(id, { argv: ["true"] }, leaves.signal).catch((thrown: unknown) => thrown);
  await bed.clock.advance(1000);
  leaves.abort(new Error("left"));
  expect(await left).toMatchObject({ message: "left" });
  const told = bed.execs.start(id, { argv: ["true"] }).catch((thrown: unknown) => thrown);
  await bed.clock.advance(1000);
  held.letGo();
  await passUntil(bed, Promise.all([stopping, told]));
  expect(await told).toMatchObject({ code: "CONTAINER_NOT_RUNNING" });
});

test("a command that comes while a stop is thought better of goes on in the running sandbox", async () => {
  await using bed = sandboxBed();
  const { id } = await bed.sandboxes.create({});
  let exec: ReturnType<typeof bed.execs.start> | undefined;
  const onlyIf = async () => {
    exec = bed.execs.start(id, { argv: ["true"] });
    await bed.clock.advance(0);
    return false;
  };
  expect(await bed.sandboxes.stop(id, { onlyIf })).toMatchObject({ state: "running" });
  await bed.clock.advance(1000);
  expect(await bed.execs.wait(id, (await exec)?.id ?? "")).toMatchObject({ exitCode: 0 });
});

test("a stop that fails, or whose process has died, keeps nobody waiting", async () => {
  await using bed = sandboxBed();
  const { id } = await bed.sandboxes.create({});
  bed.driver.failNext("stop", new Error("no engine"));
  await expect(bed.sandboxes.stop(id)).rejects.toThrow("no engine");
  expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "running", stoppedAt: undefined });
  const until = new Date(bed.clock.now().getTime() + 60_000);
  await bed.store.claims.take({ sandboxId: id, holder: "p9#1", purpose: "stop", until }, bed.clock.now());
  await bed.store.sandboxes.update(id, { stoppedAt: bed.clock.now() });
  bed.dead.add("p9");
  await bed.execs.start(id, { argv: ["true"] });
  await bed.sandboxes.reconcile();
  expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "running", stoppedAt: undefined });
});

test("a stop that is thought better of leaves the sandbox's disk watched", async () => {
  await using bed = sandboxBed();
  const { id } = await bed.sandboxes.create({ limits: { diskBytes: 10 } });
  expect(await bed.sandboxes.stop(id, { onlyIf: async () => false })).toMatchObject({ state: "running" });
  await bed.driver.files(id).writeFile("/work", "large", "more than ten bytes");
  const looked = async () => {
    await bed.clock.advance(2000);
    return await bed.sandboxes.get(id);
  };
  await expect.poll(looked, { timeout: 10_000 }).toMatchObject({ state: "stopped", endReason: "disk_full" });
});
