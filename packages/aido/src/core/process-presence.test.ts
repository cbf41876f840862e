import { expect, test } from "vitest";
import { HandClock } from "../../test/exec/hand-clock.ts";
import { fakePresence } from "../../test/processes/fake-presence.ts";
import { MemoryLeases } from "../stores/memory/memory-leases.ts";

test("a process that cannot be asked is there for as long as it renews its lease, and no longer", async () => {
  const [leases, clock, standsStill] = [new MemoryLeases(), new HandClock(), new HandClock()];
  const [lives, died] = [
    fakePresence("lives", { leases, clock }),
    fakePresence("died", { leases, clock: standsStill }),
  ];
  await Promise.all([lives.appear(), died.appear()]);
  const one = fakePresence("one", { leases, clock });
  expect(await Promise.all(["lives", "died", "never", "one"].map((name) => one.isGone(name)))).toEqual([
    false,
    false,
    true,
    false,
  ]);
  await clock.advance(10 * 60_000);
  expect(await one.isGone("lives")).toBe(false);
  expect(await one.isGone("died")).toBe(true);
  await lives.close();
  expect(await one.isGone("lives")).toBe(true);
});

test("a process that the kernel tells of needs no lease", async () => {
  const [leases, clock, dead] = [new MemoryLeases(), new HandClock(), new Set(["died"])];
  await fakePresence("died", { leases, clock }).appear();
  expect(await fakePresence("one", { leases, clock, dead }).isGone("died")).toBe(true);
  await clock.advance(10 * 60_000);
  expect(await fakePresence("one", { leases, clock }).isGone("one")).toBe(false);
});

test("a clock that is set, forward or back, makes nobody dead who lives", async () => {
  const [leases, clock] = [new MemoryLeases(), new HandClock()];
  const lives = fakePresence("lives", { leases, clock });
  await lives.appear();
  const one = fakePresence("one", { leases, clock });
  expect(await one.isGone("lives")).toBe(false);
  for (const byMs of [86_400_000, -10 * 86_400_000]) {
    clock.set(new Date(clock.now().getTime() + byMs));
    expect(await one.isGone("lives")).toBe(false);
    await clock.advance(61_000);
    expect(await one.isGone("lives")).toBe(false);
  }
  await lives.close();
});

test("a lease from before the clock went back keeps nobody alive", async () => {
  const [leases, ahead, clock] = [new MemoryLeases(), new HandClock(), new HandClock()];
  ahead.set(new Date(clock.now().getTime() + 86_400_000));
  await fakePresence("died", { leases, clock: ahead }).appear();
  expect(await fakePresence("one", { leases, clock }).isGone("died")).toBe(true);
});

test("leases that ended long ago are forgotten by whoever appears", async () => {
  const [leases, clock] = [new MemoryLeases(), new HandClock()];
  await leases.take("process.old", "old", clock.now(), clock.now());
  await clock.advance(2 * 86_400_000);
  const one = fakePresence("one", { leases, clock });
  await one.appear();
  expect(await leases.endOf("process.old")).toBeUndefined();
  expect(await leases.endOf("process.one")).toBeDefined();
  await one.close();
  expect(await leases.endOf("process.one")).toBeUndefined();
});
