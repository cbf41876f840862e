import { expect, test, vi } from "vitest";
import { FastClock } from "../testing/fast-clock.ts";
import { complete, doAll, fail, PLAN, SwarmBed, story } from "../testing/swarm-bed.ts";

const WAIT = { timeout: 15_000, interval: 5 };

test("a worker that says nothing is warned about, then stopped", async () => {
  using bed = new SwarmBed(new FastClock());
  await bed.begin(await bed.tasks("a", "b"), { plan: { ...PLAN, silenceMs: 20_000 } });
  bed.workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-b")) doAll(worker);
  };
  const { results } = await bed.drive();
  expect(bed.statuses()).toEqual({ a: "failed", b: "completed" });
  expect(results[0]?.errors).toEqual(["It said nothing for 20 s"]);
  expect(bed.warnings()[0]).toContain("unless it does");
  expect(bed.worker("a").stops).toEqual([10_000]);
});

test("a worker that goes beyond its time or its tokens is stopped by the host when its adapter does not", async () => {
  using bed = new SwarmBed(new FastClock());
  const agent = { agent: "claude", maxSeconds: 5, maxTokens: 1000, maxTurns: 3 } as const;
  await bed.begin(await bed.tasks("time", "tokens", "turns"), { plan: { ...PLAN, agent } });
  bed.workers.onStart = (worker) => {
    worker.onStop = () => complete(worker, { status: "stopped" }, 130);
    const usage = { turns: 0, inputTokens: 0, outputTokens: 0 };
    if (worker.request.name.endsWith("tokens")) usage.inputTokens = 1200;
    if (worker.request.name.endsWith("turns")) usage.turns = 3;
    story(worker, "US-001", "in_progress", { usage });
  };
  const { results } = await bed.drive();
  expect(Object.values(bed.statuses())).toEqual(["stopped", "stopped", "stopped"]);
  expect(bed.worker("time").started?.env).toMatchObject({ AIMI_MAX_SECONDS: "5", AIMI_MAX_TOKENS: "1000" });
  const reasons = bed.told("state").flatMap(({ reason }) => reason ?? []);
  for (const part of ["1200 of 1000 tokens", "3 of 3 turns", "time of 5 s"]) {
    expect(reasons.join()).toContain(part);
  }
  expect(results.length).toBe(3);
});

test("a worker that is begun anew has what is left of its budgets, and none when they are used up", async () => {
  using bed = new SwarmBed(new FastClock());
  const agent = { agent: "claude", maxSeconds: 600, maxTokens: 1000, maxTurns: 9 } as const;
  const before = { ...PLAN, agent };
  await bed.begin(await bed.tasks("a"), { plan: before });
  const usage = { turns: 4, inputTokens: 500, outputTokens: 100 };
  bed.workers.onStart = (worker) => story(worker, "US-001", "in_progress", { usage });
  const driven = bed.drive();
  const worked = async () =>
    (await bed.records.read(bed.onDisk().swarmId, "aimi-swarm-a"))?.seconds ?? Number.NaN;
  await vi.waitFor(async () => expect(await worked()).toBeGreaterThan(10), WAIT);
  fail(bed.worker("a"), "AGENT_CRASH", "it fell over");
  await driven;
  const seconds = await worked();
  await bed.resume();
  bed.workers.onStart = (worker) => {
    story(worker, "US-001", "in_progress", { usage });
    fail(worker, "AGENT_CRASH", "it fell over");
  };
  await bed.drive();
  expect(bed.worker("a").started?.env).toMatchObject({
    AIMI_MAX_TURNS: "5",
    AIMI_MAX_TOKENS: "400",
    AIMI_MAX_SECONDS: String(600 - seconds),
  });
  await bed.resume();
  const { results } = await bed.drive();
  expect(results).toMatchObject([
    { state: "stopped", errors: ["Its budget is used up: 1200 of 1000 tokens are used"] },
  ]);
  // With a larger one it goes on.
  bed.workers.onStart = doAll;
  await bed.resume({ planFor: () => ({ ...before, agent: { ...agent, maxTokens: 5000 } }) });
  await bed.drive();
  expect(bed.worker("a").started?.env).toMatchObject({ AIMI_MAX_TURNS: "1", AIMI_MAX_TOKENS: "3800" });
  expect(bed.statuses()).toEqual({ a: "completed" });
});

test("a worker that does not end when stopped is taken away", async () => {
  using bed = new SwarmBed(new FastClock(1000));
  await bed.begin(await bed.tasks("a"), { plan: { ...PLAN, silenceMs: 2000 } });
  bed.workers.onStart = (worker) => {
    worker.onStop = () => undefined;
  };
  await bed.drive();
  expect(bed.statuses()).toEqual({ a: "failed" });
  expect(bed.workers.all.size).toBe(0);
});

class HourLaterClock extends FastClock {
  isLater = false;

  override now(): Date {
    return new Date(super.now().getTime() + (this.isLater ? 3_600_000 : 0));
  }
}

test.each([
  ["tokens", { maxTokens: 1000 }, "1200 of 1000 tokens are used"],
  ["turns", { maxTurns: 2 }, "2 of 2 turns are used"],
  ["time, runs before included,", { maxSeconds: 7200 }, "its time of 7200 s is over"],
])(
  "a swarm's budget of %s counts all its workers, stops those that run and begins no other",
  async (_, budgets, reason) => {
    const clock = new HourLaterClock();
    using bed = new SwarmBed(clock);
    await bed.begin(await bed.tasks("a", "b", "c"));
    let started = 0;
    bed.workers.onStart = (worker) => {
      started += 1;
      clock.isLater = started === 2;
      worker.onStop = () => complete(worker, { status: "stopped" }, 130);
      story(worker, "US-001", "in_progress", { usage: { turns: 1, inputTokens: 500, outputTokens: 100 } });
    };
    const { results } = await bed.drive({ maxWorkers: 2, budgets, secondsBefore: 3600 });
    expect(bed.statuses()).toEqual({ a: "stopped", b: "stopped", c: "pending" });
    expect(results.map(({ state }) => state)).toEqual(["stopped", "stopped", "pending"]);
    expect(bed.warnings().join()).toContain(reason);
  },
);

test("a flood on standard error is read to its end, and only a part of it is told", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("login"));
  bed.workers.onStart = (worker) => {
    worker.write("x".repeat(5_000_000), "stderr");
    worker.write(`\n${"line\n".repeat(100_000)}`, "stderr");
    complete(worker);
  };
  const { results } = await bed.drive();
  expect(results[0]?.state).toBe("completed");
  expect(bed.told("log").length).toBeLessThan(1000);
  expect(bed.told("log").every(({ text }) => text.length <= 2000)).toBe(true);
  expect(
    bed
      .told("log")
      .map(({ text }) => text)
      .join(),
  ).toContain("lines left out");
  expect(results[0]?.lastLines).toHaveLength(20);
});

test("files that a worker changes are told once each, and known to whoever resumes", async () => {
  using bed = new SwarmBed();
  await bed.begin(await bed.tasks("a"));
  bed.workers.onStart = (worker) => {
    story(worker, "US-001", "in_progress", { changedFiles: ["README.md", "src/a.ts"] });
    story(worker, "US-001", "completed", { changedFiles: ["README.md", "src/b.ts"] });
    complete(worker);
  };
  await bed.drive();
  expect(bed.told("files").map(({ paths }) => paths)).toEqual([["README.md", "src/a.ts"], ["src/b.ts"]]);
  await bed.drive({ isResumed: true });
  expect(bed.told("worker").at(-1)?.changedFiles).toEqual(["README.md", "src/a.ts", "src/b.ts"]);
});
