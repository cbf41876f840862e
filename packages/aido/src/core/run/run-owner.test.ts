import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ProcessIdentity } from "../process-identity.ts";
import { RunOwner } from "./run-owner.ts";

async function makeMachine() {
  const directory = await mkdtemp(join(tmpdir(), "aido-owner-"));
  const dead = new Set<string>();
  const clock = { at: Date.now(), now: () => new Date(clock.at), sleep: async () => undefined };
  const owner = (self: string) => {
    const isDead = (holder: string) => dead.has(holder);
    const isAlive = (holder: string) => holder.startsWith("boot.") && !isDead(holder);
    const identity: ProcessIdentity = { self, isDead, isAlive };
    return new RunOwner(join(directory, "owners"), identity, clock);
  };
  return {
    directory,
    dead,
    clock,
    owner,
    async [Symbol.asyncDispose]() {
      await rm(directory, { recursive: true });
    },
  };
}

test("a run has one owner at a time, and the next after it is released", async () => {
  await using machine = await makeMachine();
  const [one, two] = [machine.owner("boot.1.10.1.a"), machine.owner("boot.1.20.1.b")];
  expect(await one.holder()).toBeUndefined();
  expect(await one.take()).toBe(true);
  expect(await one.take()).toBe(false);
  expect(await two.take()).toBe(false);
  expect(await two.holder()).toBe("boot.1.10.1.a");
  await two.release();
  expect(await two.take()).toBe(false);
  await one.release();
  expect(await two.take()).toBe(true);
});

test("of many processes that find the owner dead, one becomes its heir", async () => {
  await using machine = await makeMachine();
  expect(await machine.owner("boot.1.1.1.x").take()).toBe(true);
  machine.dead.add("boot.1.1.1.x");
  const heirs = Array.from({ length: 20 }, (_, index) => machine.owner(`boot.1.${index + 2}.1.y`));
  const taken = await Promise.all(heirs.map((heir) => heir.take()));
  expect(taken.filter(Boolean)).toHaveLength(1);
});

test("an owner that cannot be asked counts as dead once it has been silent for a minute", async () => {
  await using machine = await makeMachine();
  expect(await machine.owner("before-reboot.1.1.1.x").take()).toBe(true);
  const later = machine.owner("boot.1.2.1.y");
  expect(await later.take()).toBe(false);
  machine.clock.at += 61_000;
  expect(await later.take()).toBe(true);
});

test("an owner of this machine that lives is never taken for dead, however silent", async () => {
  await using machine = await makeMachine();
  expect(await machine.owner("boot.1.1.1.x").take()).toBe(true);
  machine.clock.at += 3_600_000;
  expect(await machine.owner("boot.1.2.1.y").take()).toBe(false);
});

test("releasing leaves one small file, however often a run is owned", async () => {
  await using machine = await makeMachine();
  const owner = machine.owner("boot.1.1.1.x");
  for (let i = 0; i < 5; i++) {
    expect(await owner.take()).toBe(true);
    await owner.release();
  }
  expect(await readdir(join(machine.directory, "owners"))).toHaveLength(1);
});
