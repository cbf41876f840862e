import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { MemoryLeases } from "../../stores/memory/memory-leases.ts";
import type { Logger } from "../logger.ts";
import { PeriodicTasks } from "./periodic-tasks.ts";

describe("periodic tasks", () => {
  test("come at their turns, from the end of one to the beginning of the next", async () => {
    const { clock, tasks } = bed();
    const began: number[] = [];
    const start = clock.now().getTime();
    tasks.start({
      name: "a.b",
      everyMs: 1000,
      run: async () => {
        began.push(clock.now().getTime() - start);
        await clock.sleep(500);
      },
    });
    await clock.advance(4600);
    expect(began).toEqual([1000, 2500, 4000]);
    await tasks.stop();
    await clock.advance(10_000);
    expect(began).toHaveLength(3);
  });

  test("say a failure once, try again, and say the next one", async () => {
    const { clock, tasks, warnings } = bed();
    const results = ["down", "down", "", "down"];
    let turns = 0;
    const run = async () => {
      const message = results[turns++];
      if (message) throw new Error(message);
    };
    tasks.start({ name: "a.b", everyMs: 1000, run });
    await clock.advance(4000);
    expect(turns).toBe(4);
    expect(warnings).toEqual([
      { event: "a.b", message: "down" },
      { event: "a.b", message: "down" },
    ]);
    await tasks.stop();
  });

  test("out of turn join the run that goes on, and its failure is the caller's", async () => {
    const { clock, tasks } = bed();
    let turns = 0;
    const run = async () => {
      turns += 1;
      await clock.sleep(100);
      throw new Error("no");
    };
    tasks.start({ name: "a.b", everyMs: 60_000, run });
    const both = Promise.allSettled([tasks.runNow("a.b"), tasks.runNow("a.b")]);
    await clock.advance(100);
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(turns).toBe(1);
    await tasks.stop();
  });

  test("of two processes do a shared one in one at a time, and each when the other is done", async () => {
    const { clock, tasks, other } = bed();
    const log: string[] = [];
    const task = (name: string) => ({
      name: "a.b",
      everyMs: 1000,
      isShared: true,
      run: async () => {
        log.push(`${name} begins`);
        // Longer than a lease: it is renewed meanwhile.
        await clock.sleep(150_000);
        log.push(`${name} ends`);
      },
    });
    tasks.start(task("one"));
    other.start(task("two"));
    await clock.advance(100_000);
    expect(log).toEqual(["one begins"]);
    expect(await other.runNow("a.b")).toBe(false);
    await clock.advance(160_000);
    expect(log.slice(0, 3)).toEqual(["one begins", "one ends", "two begins"]);
    const stopped = Promise.all([tasks.stop(), other.stop()]);
    await clock.advance(200_000);
    await stopped;
  });

  test("are told when another process has taken over", async () => {
    const { clock, tasks, leases } = bed();
    let isTold = false;
    const run = async (signal: AbortSignal) => {
      await clock.sleep(1_000_000, signal).catch(() => undefined);
      isTold = signal.aborted;
    };
    tasks.start({ name: "a.b", everyMs: 1000, isShared: true, run });
    await clock.advance(1000);
    const late = new Date(clock.now().getTime() + 3_600_000);
    expect(await leases.take("a.b", "another", late, late)).toBe(true);
    await clock.advance(20_000);
    expect(isTold).toBe(true);
    await tasks.stop();
  });

  test("that do not end when told to are left after the limit, and named", async () => {
    const { clock, tasks, warnings } = bed();
    tasks.start({ name: "a.b", everyMs: 1000, run: () => new Promise(() => undefined) });
    await clock.advance(1000);
    const stopped = tasks.stop(5000);
    await clock.advance(5000);
    await stopped;
    expect(warnings).toEqual([{ event: "a.b" }]);
  });
});

function bed() {
  const clock = new HandClock();
  const leases = new MemoryLeases();
  const warnings: object[] = [];
  const ignore = () => undefined;
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: (fields) => warnings.push(fields),
    error: ignore,
    child: () => logger,
  };
  const deps = { leases, clock, logger };
  return { clock, leases, warnings, tasks: new PeriodicTasks(deps), other: new PeriodicTasks(deps) };
}
