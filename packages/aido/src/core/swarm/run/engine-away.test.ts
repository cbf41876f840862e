import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { FastClock } from "../testing/fast-clock.ts";
import { doAll, SwarmBed } from "../testing/swarm-bed.ts";

test("an engine that does not answer for a while says nothing about a worker", async () => {
  using bed = new SwarmBed(new FastClock());
  await bed.begin(await bed.tasks("a"));
  const { follow } = bed.workers;
  let failures = 3;
  bed.workers.follow = async function* (...args) {
    if (failures > 0) {
      failures -= 1;
      throw new AidoError("RUNTIME_UNAVAILABLE", "The engine does not answer");
    }
    yield* follow.apply(bed.workers, args);
  };
  bed.workers.onStart = doAll;
  await bed.drive();
  expect(bed.statuses()).toEqual({ a: "completed" });
  expect(bed.warnings()).toEqual(["The engine does not answer; trying again"]);
});

test("an engine that goes away while a container is made is waited for, and the worker is made once", async () => {
  using bed = new SwarmBed(new FastClock());
  await bed.begin(await bed.tasks("a"));
  const { create } = bed.workers;
  let failures = 2;
  bed.workers.create = async (...args) => {
    const made = await create.apply(bed.workers, args);
    if (failures === 0) return made;
    // It may have made it before it went.
    failures -= 1;
    throw new AidoError("RUNTIME_UNAVAILABLE", "The engine does not answer");
  };
  bed.workers.onStart = doAll;
  await bed.drive();
  expect(bed.statuses()).toEqual({ a: "completed" });
  expect([...bed.workers.all.keys()]).toEqual(["aimi-swarm-a"]);
  expect(bed.entry("a").containerId).toBe(bed.worker("a").containerId);
});
