import { expect, test, vi } from "vitest";
import { FastClock } from "../testing/fast-clock.ts";
import { complete, doAll, fail, SwarmBed, story } from "../testing/swarm-bed.ts";

const WAIT = { timeout: 15_000, interval: 5 };

test("S1-6 S1-26 S1-28 S1-33 S1-34 each task file gets a worker, a task-request, and its end in the state", async () => {
  using bed = new SwarmBed();
  bed.workers.onStart = doAll;
  await bed.begin(await bed.tasks("login", "cart", "search"));
  const done = await bed.drive();
  expect(done.results.map(({ state, prUrl }) => [state, prUrl])).toEqual(
    Array(3).fill(["completed", "https://example.com/pull/1"]),
  );
  expect(bed.statuses()).toEqual({ login: "completed", cart: "completed", search: "completed" });
  expect(bed.entry("cart")).toMatchObject({
    containerId: bed.worker("cart").containerId,
    branchName: "feat/cart",
    prUrl: "https://example.com/pull/1",
    acpPid: null,
    storyProgress: { total: 2, completed: 2, failed: 0, inProgress: 0, pending: 0 },
  });
  const { request, env } = bed.worker("cart").started ?? {};
  expect(request).toMatchObject({
    type: "task-request",
    payload: {
      taskFilePath: ".aimi/tasks/cart-tasks.json",
      branchName: "feat/cart",
      repoUrl: "https://example.com/shop.git",
      envVars: {},
    },
  });
  expect(env).toMatchObject({
    ANTHROPIC_API_KEY: "key",
    IS_SANDBOX: "1",
    AIMI_BRANCH: "feat/cart",
    SWARM_ID: bed.onDisk().swarmId,
    CONTAINER_ID: bed.worker("cart").containerId,
    AIMI_AGENT: "claude",
  });
});

test("S1-32 S1-33 a worker is pending until its adapter is started, then running, and told in this order", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("login"));
  expect(bed.entry("login")).toMatchObject({ status: "pending", containerId: "0".repeat(64) });
  const seen: string[] = [];
  bed.workers.onStart = (worker) => {
    seen.push(bed.entry("login").status, bed.entry("login").containerId);
    complete(worker);
  };
  await bed.drive();
  expect(seen).toEqual(["pending", bed.worker("login").containerId]);
  expect(bed.events.map((event) => (event.type === "state" ? event.state : event.type))).toEqual([
    "swarm",
    "worker",
    "creating",
    "running",
    "completed",
    "done",
  ]);
});

test("S1-27 real transitions of stories are counted in the state while the worker runs", async () => {
  using bed = new SwarmBed();
  await bed.begin([await bed.task("login", 4)]);
  const driven = bed.drive();
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ login: "running" }), WAIT);
  const worker = bed.worker("login");
  story(worker, "US-001", "in_progress");
  await vi.waitFor(() => expect(bed.entry("login").storyProgress.inProgress).toBe(1), WAIT);
  story(worker, "US-001", "completed");
  story(worker, "US-002", "in_progress");
  story(worker, "US-002", "failed");
  story(worker, "US-003", "skipped");
  story(worker, "US-777", "completed");
  story(worker, "US-000", "in_progress", { output: "thinking\nhard" });
  await vi.waitFor(
    () =>
      expect(bed.entry("login").storyProgress).toEqual({
        total: 4,
        completed: 1,
        failed: 1,
        inProgress: 0,
        pending: 1,
      }),
    WAIT,
  );
  expect(bed.entry("login").acpPid).toBe(process.pid);
  complete(worker);
  await driven;
  expect(bed.told("progress").map(({ text }) => text)).toEqual(["thinking", "hard"]);
  expect(bed.told("story").map(({ story, status }) => `${story} ${status}`)).not.toContain(
    "US-777 completed",
  );
});

test("S1-64 no more than the maximum run at once; those beyond it are pending until there is room", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a", "b", "c", "d", "e"));
  const driven = bed.drive({ maxWorkers: 2 });
  await vi.waitFor(() => expect(bed.workers.all.size).toBe(2), WAIT);
  for (const name of ["a", "b", "c", "d", "e"]) {
    await vi.waitFor(() => expect(bed.statuses()[name]).toBe("running"), WAIT);
    expect(Object.values(bed.statuses()).filter((status) => status === "running").length).toBeLessThan(3);
    complete(bed.worker(name));
  }
  expect((await driven).results.every(({ state }) => state === "completed")).toBe(true);
});

test("S1-71 one that cannot be made and one that fails leave the others alone", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a", "b", "c"));
  const { create } = bed.workers;
  bed.workers.create = async (request, signal) => {
    if (request.name.endsWith("-a")) throw new Error("no such image");
    return await create.call(bed.workers, request, signal);
  };
  bed.workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-b")) fail(worker, "GIT_CLONE_FAILED", "no access");
    else doAll(worker);
  };
  const { results } = await bed.drive();
  expect(bed.statuses()).toEqual({ a: "failed", b: "failed", c: "completed" });
  expect(results.map(({ errors }) => errors)).toEqual([
    ["no such image"],
    ["GIT_CLONE_FAILED: no access"],
    [],
  ]);
});

test.each<[string, (worker: Parameters<typeof complete>[0]) => void, string, string]>([
  ["broken JSON", (worker) => worker.write("{no\n"), "failed", "is not JSON"],
  [
    "a message over 64 KB",
    (worker) => worker.write(`"${"x".repeat(70_000)}"\n`),
    "failed",
    "more than 65536 bytes",
  ],
  [
    "a message behind the last",
    (worker) => {
      complete(worker);
      worker.write("{}\n");
    },
    "failed",
    "behind the last",
  ],
  ["an end without a last message", (worker) => worker.finish(0), "failed", "without a last message"],
  ["exit 1 with completion completed", (worker) => complete(worker, {}, 1), "failed", "exit code 1"],
  [
    "completion failed",
    (worker) => complete(worker, { status: "failed", errors: ["tests fail"] }, 1),
    "failed",
    "tests fail",
  ],
  [
    "completion stopped",
    (worker) => complete(worker, { status: "stopped", errors: ["budget"] }, 130),
    "stopped",
    "budget",
  ],
  [
    "out of memory",
    (worker) => worker.finish(137, { outOfMemory: true }),
    "failed",
    "CONTAINER_OOM: It ran out of memory",
  ],
  [
    "the end of its container's time",
    (worker) => worker.finish(143, { signal: "SIGTERM", timedOut: true }),
    "failed",
    "CONTAINER_TIMEOUT: The time of its container is over",
  ],
  ["a lost container", (worker) => worker.finish(undefined), "failed", "was lost"],
])("S1-29 S1-30 S1-34 %s ends a worker with a reason", async (_, play, status, reason) => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("login"));
  bed.workers.onStart = play;
  const { results } = await bed.drive();
  expect(bed.statuses()).toEqual({ login: status });
  expect(results[0]?.errors.join()).toContain(reason);
});

test("S1-71 an interrupted run leaves the workers to themselves, and another one goes on by offset", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a", "b"));
  const interrupt = new AbortController();
  const driven = bed.drive({ maxWorkers: 1 }, interrupt.signal);
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ a: "running", b: "pending" }), WAIT);
  story(bed.worker("a"), "US-001", "completed");
  await vi.waitFor(() => expect(bed.entry("a").storyProgress.completed).toBe(1), WAIT);
  interrupt.abort();
  const done = await driven;
  expect(done).toMatchObject({ isInterrupted: true, results: [{ state: "running" }, { state: "pending" }] });
  const { containerId } = bed.worker("a");
  bed.events.length = 0;
  const again = bed.drive({ isResumed: true });
  await vi.waitFor(() => expect(bed.statuses()["b"]).toBe("running"), WAIT);
  complete(bed.worker("a"));
  doAll(bed.worker("b"));
  await again;
  expect(bed.worker("a").containerId).toBe(containerId);
  // What was heard before is in the announcement and is not told again.
  expect(bed.told("worker")[0]?.stories[0]?.status).toBe("completed");
  expect(bed.told("story").filter(({ worker }) => worker.endsWith("-a"))).toEqual([]);
  expect(bed.entry("a").storyProgress.completed).toBe(1);
});

test("a lost record is made again from the worker's output", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a"));
  const interrupt = new AbortController();
  const driven = bed.drive({}, interrupt.signal);
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ a: "running" }), WAIT);
  story(bed.worker("a"), "US-001", "completed");
  await vi.waitFor(() => expect(bed.entry("a").storyProgress.completed).toBe(1), WAIT);
  interrupt.abort();
  await driven;
  await bed.records.remove("aimi-swarm-a");
  const again = bed.drive({ isResumed: true });
  complete(bed.worker("a"));
  await again;
  expect(bed.entry("a")).toMatchObject({ status: "completed", storyProgress: { completed: 1 } });
});

test("a worker that has ended and is added again while the swarm runs is announced and run anew", async () => {
  using bed = new SwarmBed(new FastClock());
  const files = await bed.tasks("a", "b");
  await bed.begin(files);
  let starts = 0;
  bed.workers.onStart = (worker) => {
    if (!worker.request.name.endsWith("-a")) return;
    starts += 1;
    story(worker, "US-001", "in_progress", { usage: { turns: 3, inputTokens: 0, outputTokens: 0 } });
    if (starts === 1) fail(worker, "AGENT_CRASH", "it fell over");
    else doAll(worker);
  };
  const driven = bed.drive({ budgets: { maxTurns: 7 } });
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ a: "failed", b: "running" }), WAIT);
  await bed.begin(files.slice(0, 1), { mode: "append" });
  await vi.waitFor(() => expect(bed.statuses()).toEqual({ b: "running", a: "completed" }), WAIT);
  expect(bed.told("worker").map(({ worker }) => worker.slice(-1))).toEqual(["a", "b", "a"]);
  // What it used before it was added again is used all the same.
  bed.worker("b").onStop = () => complete(bed.worker("b"), { status: "stopped" }, 130);
  story(bed.worker("b"), "US-001", "in_progress", { usage: { turns: 1, inputTokens: 0, outputTokens: 0 } });
  const { results } = await driven;
  expect(results.map(({ worker, state, errors }) => [worker.slice(-1), state, errors])).toEqual([
    ["b", "stopped", []],
    ["a", "completed", []],
  ]);
});

test("a worker that is added while the swarm runs is taken up, and one that was stopped before its turn is not", async () => {
  using bed = new SwarmBed(new FastClock());
  await bed.begin(await bed.tasks("a", "b"));
  const driven = bed.drive({ maxWorkers: 1 });
  await vi.waitFor(() => expect(bed.statuses()["a"]).toBe("running"), WAIT);
  await bed.begin([await bed.task("c")], { mode: "append" });
  await bed.state.update((state) => ({
    ...state,
    containers: state.containers.map((entry) =>
      entry.containerName.endsWith("-b") ? { ...entry, status: "stopped" as const } : entry,
    ),
  }));
  bed.workers.onStart = doAll;
  complete(bed.worker("a"));
  await driven;
  expect(bed.statuses()).toEqual({ a: "completed", b: "stopped", c: "completed" });
  expect(bed.workers.all.has("aimi-swarm-b")).toBe(false);
});
