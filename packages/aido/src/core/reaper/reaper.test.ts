import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { passUntil, type SandboxBed, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import type { SandboxRecord } from "../store/store.ts";
import { SandboxReaper } from "./reaper.ts";

const MINUTE = 60_000;
const IDLE = { idleTimeoutMs: 10 * MINUTE };

describe("an idle sandbox", () => {
  test("S2-59 S2-81 is stopped with its files, once, with the reason and a count", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    const patient = await bed.sandboxes.create({ idleTimeoutMs: 60 * MINUTE });
    const ever = await bed.sandboxes.create({});
    await bed.clock.advance(9 * MINUTE);
    expect(await reap(bed)).toEqual(NOTHING);
    await bed.clock.advance(2 * MINUTE);
    expect(await reap(bed)).toEqual({ ...NOTHING, idle: [id] });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "idle" });
    expect(await bed.driver.inspect(id)).toMatchObject({ state: "exited" });
    for (const other of [patient, ever]) {
      expect(await bed.sandboxes.get(other.id)).toMatchObject({ state: "running" });
    }
    expect((await bed.events(id)).at(-1)).toBe("sandbox.stopped");
    expect(await reap(bed)).toEqual(NOTHING);
    expect(await bed.store.counters.read()).toMatchObject({ reaped_idle: 1, reaped_lifetime: 0 });
    expect(await bed.sandboxes.start(id)).toMatchObject({
      state: "running",
      lastActivityAt: bed.clock.now(),
    });
    expect(await reap(bed)).toEqual(NOTHING);
  });

  test("S2-27 S2-58 is one that nobody has used: a command, a file or a port starts the time anew", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    await bed.clock.advance(9 * MINUTE);
    const exec = await bed.execs.start(id, { argv: ["true"] });
    await bed.execs.wait(id, exec.id);
    await bed.clock.advance(9 * MINUTE);
    expect(await reap(bed)).toEqual(NOTHING);
    const lastActivityAt = new Date(bed.clock.now().getTime() - 9 * MINUTE);
    const info = await bed.sandboxes.get(id);
    expect(Math.abs(info.lastActivityAt.getTime() - lastActivityAt.getTime())).toBeLessThan(5000);
    await bed.sandboxes.stats(id);
    await bed.clock.advance(2 * MINUTE);
    expect((await reap(bed)).idle).toEqual([id]);
  });

  test("is not one in which a command runs, and is idle only from its end on", async () => {
    await using bed = sandboxBed();
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    bed.driver.addProgram("wait", () => ended);
    const { id } = await bed.sandboxes.create(IDLE);
    const exec = await bed.execs.start(id, { argv: ["wait"] });
    await bed.clock.advance(60 * MINUTE);
    expect(await reap(bed)).toEqual({ ...NOTHING, busy: [id] });
    expect(await reap(bed)).toEqual(NOTHING);
    await bed.clock.advance(9 * MINUTE);
    end();
    await bed.execs.wait(id, exec.id);
    await bed.clock.advance(9 * MINUTE);
    expect(await reap(bed)).toEqual({ ...NOTHING, busy: [id] });
    await bed.clock.advance(2 * MINUTE);
    expect((await reap(bed)).idle).toEqual([id]);
  });

  test("S2-80 is not one that a connection, a file stream or a session is open to", async () => {
    await using bed = sandboxBed();
    for (const kind of ["connection", "files", "session"] as const) {
      const { id } = await bed.sandboxes.create(IDLE);
      {
        using _use = bed.activity.begin(id, kind);
        await bed.clock.advance(60 * MINUTE);
        expect((await reap(bed)).idle).toEqual([]);
        expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
      }
      await bed.clock.advance(9 * MINUTE);
      expect((await reap(bed)).idle).toEqual([]);
      await bed.clock.advance(2 * MINUTE);
      expect((await reap(bed)).idle).toEqual([id]);
    }
  });

  test("is not one whose processors work, as much as the operator calls work", async () => {
    await using bed = sandboxBed();
    const [works, hums] = [await bed.sandboxes.create(IDLE), await bed.sandboxes.create(IDLE)];
    bed.driver.work(works.id, 0.2);
    bed.driver.work(hums.id, 0.01);
    await bed.clock.advance(11 * MINUTE);
    expect(await reap(bed)).toEqual({ ...NOTHING, idle: [hums.id], busy: [works.id] });
    bed.driver.work(works.id, 0);
    await bed.clock.advance(11 * MINUTE);
    expect((await reap(bed)).idle).toEqual([works.id]);
  });

  test("is left alone when somebody comes back after it was looked at", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    await bed.clock.advance(11 * MINUTE);
    const snapshot = async () => {
      await bed.store.sandboxes.touch([id], bed.clock.now());
      return { snapshotIsStale: true };
    };
    expect(await reap(bed, { snapshot })).toEqual({ ...NOTHING, busy: [id] });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    expect(await bed.store.counters.read()).toMatchObject({ reaped_idle: 0 });
  });

  test("S2-60 is uploaded before it is stopped when that is wanted, and stopped though that fails", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    await bed.clock.advance(11 * MINUTE);
    const states: (string | undefined)[] = [];
    const snapshot = async (record: { id: string }) => {
      states.push((await bed.store.sandboxes.get(record.id))?.state);
      throw new AidoError("RUNTIME_UNAVAILABLE", "no object store");
    };
    expect((await reap(bed, { snapshot })).idle).toEqual([id]);
    expect(states).toEqual(["running"]);
    expect(bed.warnings).toContain("No snapshot");
  });

  test("S2-60 S2-81 is stopped with its files though its upload hangs, and keeps no other from its stop", async () => {
    await using bed = sandboxBed();
    const theirs = { ...IDLE, snapshotDestination: "s3://slow/x" };
    for (let count = 0; count < 12; count += 1) await bed.sandboxes.create(theirs);
    const other = await bed.sandboxes.create(IDLE);
    await bed.clock.advance(11 * MINUTE);
    let asked = 0;
    const stopped: string[] = [];
    const snapshot = async ({ id, snapshotDestination }: SandboxRecord, signal?: AbortSignal) => {
      if (snapshotDestination === undefined) return void stopped.push(id);
      asked += 1;
      await bed.clock.sleep(24 * 60 * MINUTE, signal);
    };
    const reaping = reaper(bed, { snapshot }).reap();
    await expect
      .poll(() => bed.clock.advance(1000).then(() => bed.store.sandboxes.get(other.id)))
      .toMatchObject({ state: "stopped" });
    expect((await bed.store.sandboxes.list({ states: ["stopped"] })).map(({ id }) => id)).toEqual([other.id]);
    await passUntil(bed, reaping);
    expect((await reaping).idle).toHaveLength(13);
    // No more is tried of an owner whose place is so slow.
    expect(asked).toBeLessThan(8);
    expect(bed.warnings.filter((warning) => warning === "No snapshot")).toHaveLength(asked);
  });
});

describe("the reaper", () => {
  test("S2-61 S2-81 destroys what is beyond its life, running or stopped, and counts it once", async () => {
    await using bed = sandboxBed();
    const running = await bed.sandboxes.create({ ttlMs: MINUTE, ...IDLE });
    const stopped = await bed.sandboxes.create({ ttlMs: MINUTE });
    await bed.sandboxes.stop(stopped.id);
    await bed.clock.advance(2 * MINUTE);
    const report = await reap(bed);
    expect(report.expired.toSorted()).toEqual([running.id, stopped.id].toSorted());
    expect(await bed.driver.list()).toEqual([]);
    await expect(bed.sandboxes.get(running.id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
    await bed.sandboxes.expire();
    expect(await bed.store.counters.read()).toMatchObject({ reaped_idle: 0, reaped_lifetime: 2 });
  });

  test("of two processes ends each sandbox once", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    const old = await bed.sandboxes.create({ ttlMs: MINUTE });
    await bed.clock.advance(11 * MINUTE);
    const other = reaper(bed, { sandboxes: bed.process("p2") });
    const both = Promise.all([reaper(bed).reap(), other.reap()]);
    await passUntil(bed, both);
    await both;
    expect(await bed.store.counters.read()).toMatchObject({ reaped_idle: 1, reaped_lifetime: 1 });
    expect((await bed.events(id)).filter((event) => event === "sandbox.stopped")).toHaveLength(1);
    expect((await bed.events(old.id)).filter((event) => event === "sandbox.destroyed")).toHaveLength(1);
  });

  test("says what it would do and does nothing, when asked to", async () => {
    await using bed = sandboxBed();
    const idle = await bed.sandboxes.create(IDLE);
    const works = await bed.sandboxes.create(IDLE);
    const old = await bed.sandboxes.create({ ttlMs: MINUTE, ...IDLE });
    bed.driver.work(works.id, 1);
    await bed.clock.advance(11 * MINUTE);
    const expected = { idle: [idle.id], expired: [old.id], busy: [works.id], failed: [] };
    expect(await reap(bed, {}, { dryRun: true })).toEqual(expected);
    expect(await reap(bed, {}, { dryRun: true })).toEqual(expected);
    expect(await bed.driver.list()).toHaveLength(3);
    expect(await reap(bed)).toEqual(expected);
  });

  test("goes through 10,000 that are due in one look, in pages, past those that cannot be ended", async () => {
    await using bed = sandboxBed();
    const { store } = bed;
    const used = { ...IDLE, lastActivityAt: bed.clock.now() };
    for (let index = 0; index < 10_000; index++) {
      await store.sandboxes.insert(sandboxRecord(`s${index}`, { state: "running", ...used }));
    }
    await store.sandboxes.insert(sandboxRecord("foreign", { state: "running", driver: "other", ...used }));
    await bed.clock.advance(11 * MINUTE);
    let most = 0;
    const idleSince = store.sandboxes.idleSince.bind(store.sandboxes);
    store.sandboxes.idleSince = async (now, limit) => {
      const page = await idleSince(now, limit);
      most = Math.max(most, page.length);
      return page;
    };
    const stop = async (id: string) => {
      // The first page and a half are of those.
      if (Number(id.slice(1)) < 750) throw new AidoError("RUNTIME_UNAVAILABLE", "no engine");
      await store.sandboxes.transition(id, "running", "stopped");
      return { ...sandboxRecord(id), sidecarUrl: undefined, state: "stopped" as const };
    };
    const sandboxes = { stop, expireOne: async () => undefined } as never;
    const report = await reap(bed, { sandboxes });
    expect([report.idle.length, report.failed.length, report.busy.length]).toEqual([9250, 750, 0]);
    expect(most).toBeLessThanOrEqual(500 + 751);
    expect((await store.sandboxes.get("foreign"))?.state).toBe("running");
  });

  test("calls nothing idle because the clock was set, forward or back", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(IDLE);
    const start = bed.clock.now().getTime();
    const one = reaper(bed);
    const look = async () => {
      const looked = one.reap();
      await passUntil(bed, looked);
      return await looked;
    };
    await look();
    bed.clock.set(new Date(start + 24 * 60 * MINUTE));
    await bed.clock.advance(MINUTE);
    expect(await look()).toEqual(NOTHING);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    // Back by a day: the last use lies in the future.
    bed.clock.set(new Date(start));
    await bed.clock.advance(MINUTE);
    expect(await look()).toEqual(NOTHING);
    await bed.clock.advance(11 * MINUTE);
    expect((await look()).idle).toEqual([id]);
  });

  test("removes nothing for its age in the hour after the clock was set, and what is due after it", async () => {
    await using bed = sandboxBed();
    const life = { ttlMs: 60 * MINUTE };
    const [running, stopped] = [await bed.sandboxes.create(life), await bed.sandboxes.create(life)];
    await bed.sandboxes.stop(stopped.id);
    const one = reaper(bed);
    const look = async (dryRun = false) => {
      const looked = one.reap({ dryRun });
      await passUntil(bed, looked);
      return await looked;
    };
    const start = bed.clock.now().getTime();
    bed.clock.set(new Date(start + 30 * 24 * 60 * MINUTE));
    for (const dryRun of [true, false, true, false]) expect(await look(dryRun)).toEqual(NOTHING);
    expect(await bed.sandboxes.expire()).toBe(0);
    await bed.sandboxes.reconcile();
    expect(await bed.sandboxes.get(stopped.id)).toMatchObject({ state: "stopped" });
    expect(await bed.sandboxes.get(running.id)).toMatchObject({ state: "running" });
    expect(bed.warnings.filter((warning) => warning.startsWith("The clock was set"))).toHaveLength(1);
    // Set right again: it has most of its life before it.
    bed.clock.set(new Date(start + MINUTE));
    await bed.clock.advance(30 * MINUTE);
    expect(await look()).toEqual(NOTHING);
    await bed.clock.advance(61 * MINUTE);
    expect((await look(true)).expired).toHaveLength(2);
    expect((await look()).expired.toSorted()).toEqual([running.id, stopped.id].toSorted());
  });
});

const NOTHING = { idle: [], expired: [], busy: [], failed: [] };
type Changes = Partial<ConstructorParameters<typeof SandboxReaper>[0]>;

function reaper(bed: SandboxBed, changes: Changes = {}): SandboxReaper {
  return new SandboxReaper({
    ...bed.shared,
    sandboxes: bed.sandboxes,
    runningExecs: (record) => bed.execs.running(record),
    busyCpus: 0.05,
    ...changes,
  });
}

/** A second passes in it, for the look at processors. */
async function reap(bed: SandboxBed, changes: Changes = {}, options: { dryRun?: boolean } = {}) {
  const reaping = reaper(bed, changes).reap(options);
  await passUntil(bed, reaping);
  return await reaping;
}
