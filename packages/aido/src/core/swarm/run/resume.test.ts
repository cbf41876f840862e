import { expect, test, vi } from "vitest";
import { complete, doAll, fail, SwarmBed, story } from "../testing/swarm-bed.ts";
import { cleanUpSwarm } from "./cleanup-swarm.ts";
import { stopWorkers } from "./stop-workers.ts";

const UNPUSHED = "The branch is not pushed, and its work is in the container alone: denied";
const WAIT = { timeout: 15_000, interval: 5 };

/** Workers a (completed), b (failed), c (running, nobody listens), d (pending). */
async function interrupted(): Promise<SwarmBed> {
  const bed = new SwarmBed();
  await bed.begin(await bed.tasks("a", "b", "c", "d"));
  bed.workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-a")) doAll(worker);
    if (worker.request.name.endsWith("-b")) fail(worker, "AGENT_CRASH", "it fell over");
    if (worker.request.name.endsWith("-c")) story(worker, "US-001", "in_progress");
  };
  const interrupt = new AbortController();
  const driven = bed.drive({ maxWorkers: 1 }, interrupt.signal);
  await vi.waitFor(() => expect(bed.entry("c").storyProgress.inProgress).toBe(1), WAIT);
  interrupt.abort();
  await driven;
  expect(bed.statuses()).toEqual({ a: "completed", b: "failed", c: "running", d: "pending" });
  bed.events.length = 0;
  return bed;
}

test("S1-70 resume begins what failed anew, goes on with what runs and leaves what completed", async () => {
  using bed = await interrupted();
  const [a, b, c] = ["a", "b", "c"].map((name) => bed.worker(name).containerId);
  await bed.resume();
  expect(bed.statuses()).toEqual({ a: "completed", b: "pending", c: "running", d: "pending" });
  expect(bed.workers.all.has("aimi-swarm-b")).toBe(false);
  bed.workers.onStart = doAll;
  const driven = bed.drive({ isResumed: true });
  complete(bed.worker("c"));
  const { results } = await driven;
  expect(results.map(({ state }) => state)).toEqual(Array(4).fill("completed"));
  expect(bed.worker("a").containerId).toBe(a);
  expect(bed.worker("b").containerId).not.toBe(b);
  expect(bed.worker("c").containerId).toBe(c);
});

test("S1-50 S1-54 what ended while nobody looked is read to its end before resume", async () => {
  using bed = await interrupted();
  story(bed.worker("c"), "US-001", "completed");
  complete(bed.worker("c"), { prUrl: "https://example.com/pull/7" });
  await bed.resume();
  expect(bed.entry("c")).toMatchObject({
    status: "completed",
    prUrl: "https://example.com/pull/7",
    storyProgress: { completed: 1 },
  });
});

test("S1-50 S1-55 what failed while nobody looked is begun anew at once", async () => {
  using bed = await interrupted();
  bed.worker("c").finish(1);
  await bed.resume();
  expect(bed.entry("c")).toMatchObject({ status: "pending", containerId: "0".repeat(64) });
});

test.each<[string, (bed: SwarmBed) => void]>([
  ["that was not pushed", (bed) => complete(bed.worker("c"), { status: "failed", errors: [UNPUSHED] }, 1)],
  ["of a worker that said nothing at its end", (bed) => bed.worker("c").finish(137)],
])("work %s is still in its container when it is resumed, whoever is killed meanwhile", async (_, end) => {
  using bed = await interrupted();
  const { containerId } = bed.worker("c");
  bed.worker("c").files = ["a commit"];
  end(bed);
  await bed.resume();
  expect(bed.entry("c")).toMatchObject({ status: "pending", containerId: "0".repeat(64) });
  // A stop before it runs again takes nothing away either.
  const { restart } = bed.workers;
  bed.workers.restart = async (...args) => {
    await stopWorkers(bed.deps, { named: ["aimi-swarm-c"], graceMs: 1000 });
    return await restart.apply(bed.workers, args);
  };
  bed.workers.onStart = doAll;
  await bed.drive({ isResumed: true });
  expect(bed.entry("c").status).toBe("stopped");
  bed.workers.restart = restart;
  await bed.resume();
  await bed.drive({ isResumed: true });
  expect(bed.worker("c")).toMatchObject({ containerId, files: ["a commit"] });
  expect(bed.entry("c")).toMatchObject({ status: "completed", containerId });
});

test("work that is kept in a container which somebody removed is begun anew in another", async () => {
  using bed = await interrupted();
  bed.worker("c").finish(137);
  await bed.resume();
  await bed.workers.remove("aimi-swarm-c");
  bed.workers.onStart = doAll;
  await bed.drive({ isResumed: true });
  expect(bed.statuses()["c"]).toBe("completed");
});

test("resume of named workers leaves the others that ended", async () => {
  using bed = await interrupted();
  await expect(bed.resume({ named: ["aimi-swarm-z"] })).rejects.toMatchObject({
    code: "CONTAINER_NOT_FOUND",
  });
  await bed.resume({ named: ["aimi-swarm-d"] });
  expect(bed.statuses()["b"]).toBe("failed");
});

test("a worker that is paused goes on in its container, where its work is", async () => {
  using bed = await interrupted();
  const { containerId } = bed.worker("c");
  bed.worker("c").dockerState = "paused";
  await bed.resume();
  bed.workers.onStart = doAll;
  await bed.drive({ isResumed: true });
  expect(bed.entry("c")).toMatchObject({ status: "completed", containerId });
});

test("a worker that was paused and runs again is gone on with", async () => {
  using bed = await interrupted();
  bed.worker("c").dockerState = "paused";
  await bed.resume();
  expect(bed.statuses()["c"]).toBe("pending");
  using other = await interrupted();
  await other.state.update((state) => ({
    ...state,
    containers: state.containers.map((entry) =>
      entry.containerName.endsWith("-c") ? { ...entry, status: "stopped" as const } : entry,
    ),
  }));
  const { containerId } = other.worker("c");
  await other.resume();
  expect(other.entry("c")).toMatchObject({ status: "running", containerId });
});

test("stop ends what runs and what waits, and resume begins them anew", async () => {
  using bed = await interrupted();
  bed.worker("c").onStop = () => complete(bed.worker("c"), { status: "stopped" }, 130);
  expect(await stopWorkers(bed.deps, { named: [], graceMs: 5000 })).toEqual([
    { worker: "aimi-swarm-c" },
    { worker: "aimi-swarm-d" },
  ]);
  expect(bed.statuses()).toEqual({ a: "completed", b: "failed", c: "stopped", d: "stopped" });
  expect(bed.worker("c").stops).toEqual([5000]);
  await bed.resume();
  expect(bed.statuses()).toEqual({ a: "completed", b: "pending", c: "pending", d: "pending" });
});

test("stop of a worker while another process drives it is seen there as its end", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a", "b"));
  const driven = bed.drive();
  await vi.waitFor(() => expect(Object.values(bed.statuses())).toEqual(["running", "running"]), WAIT);
  await stopWorkers(bed.deps, { named: ["aimi-swarm-a"], graceMs: 1000 });
  doAll(bed.worker("b"));
  expect((await driven).results.map(({ state }) => state)).toEqual(["stopped", "completed"]);
  expect(bed.statuses()).toEqual({ a: "stopped", b: "completed" });
});

test("stop of a worker whose container is just being made is not lost: it never runs", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a"));
  const { create } = bed.workers;
  let isAsked = false;
  let makeIt = () => {};
  const made = new Promise<void>((resolve) => {
    makeIt = resolve;
  });
  bed.workers.create = async (...args) => {
    isAsked = true;
    await made;
    return await create.apply(bed.workers, args);
  };
  let starts = 0;
  bed.workers.onStart = () => {
    starts += 1;
  };
  const driven = bed.drive();
  await vi.waitFor(() => expect(isAsked).toBe(true), WAIT);
  expect(await stopWorkers(bed.deps, { named: ["aimi-swarm-a"], graceMs: 1000 })).toEqual([
    { worker: "aimi-swarm-a" },
  ]);
  makeIt();
  expect((await driven).results[0]).toMatchObject({
    state: "stopped",
    errors: ["It was stopped before it ran"],
  });
  expect(bed.entry("a")).toMatchObject({ status: "stopped", acpPid: null });
  expect(bed.workers.all.size).toBe(0);
  expect(starts).toBe(0);
});

test("stop of a worker while its adapter is being started ends it", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a"));
  const { startAdapter } = bed.workers;
  bed.workers.startAdapter = async (...args) => {
    await stopWorkers(bed.deps, { named: ["aimi-swarm-a"], graceMs: 1000 });
    await startAdapter.apply(bed.workers, args);
  };
  expect((await bed.drive()).results[0]?.state).toBe("stopped");
  expect(bed.statuses()).toEqual({ a: "stopped" });
  expect(bed.worker("a").stops).toEqual([10_000]);
});

test("cleanup leaves a worker alone that another process begins anew meanwhile", async () => {
  using bed = await interrupted();
  bed.worker("c").finish(1);
  const state = {
    ...bed.deps.state,
    read: async () => {
      const seen = await bed.state.read();
      bed.workers.onStart = undefined;
      await bed.resume();
      void bed.drive({ isResumed: true });
      await vi.waitFor(() => expect(bed.statuses()["b"]).toBe("running"), WAIT);
      return seen;
    },
    update: bed.state.update.bind(bed.state),
  };
  expect(await cleanUpSwarm({ ...bed.deps, state })).toEqual({ removed: ["aimi-swarm-a"], failed: [] });
  for (const name of ["b", "c", "d"]) await vi.waitFor(() => doAll(bed.worker(name)), WAIT);
  await vi.waitFor(
    () => expect(bed.statuses()).toEqual({ b: "completed", c: "completed", d: "completed" }),
    WAIT,
  );
});

test("resume goes on with the others when somebody cleans one of them up meanwhile", async () => {
  using bed = await interrupted();
  const { remove } = bed.workers;
  bed.workers.remove = async (name) => {
    bed.workers.remove = remove;
    await remove.call(bed.workers, name);
    await cleanUpSwarm(bed.deps);
  };
  expect((await bed.resume()).containers.map(({ status }) => status)).toEqual(["running", "pending"]);
});

test("S1-35 cleanup removes the containers, records and entries of what has ended", async () => {
  using bed = await interrupted();
  const { swarmId } = bed.onDisk();
  expect(await cleanUpSwarm(bed.deps)).toEqual({ removed: ["aimi-swarm-a", "aimi-swarm-b"], failed: [] });
  expect(bed.statuses()).toEqual({ c: "running", d: "pending" });
  expect([...bed.workers.all.keys()]).toEqual(["aimi-swarm-c"]);
  expect(await bed.records.read(swarmId, "aimi-swarm-a")).toBeUndefined();
});
