import { expect, test } from "vitest";
import type { SwarmDeps } from "../swarm-deps.ts";
import { doAll, MemoryState, SwarmBed, story } from "../testing/swarm-bed.ts";
import { driveSwarm } from "./drive-swarm.ts";
import { prepareResume } from "./prepare-resume.ts";

/** Of a process that is killed nothing comes any more: whatever it waits for never answers. */
const never = new Promise<never>(() => undefined);

/** As the given ones, for a process that dies at a call: before it has had its effect, or after. */
function mortal(deps: SwarmDeps, dieAt: { call: number; when: "before" | "after" }) {
  let calls = 0;
  let isDead = false;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = () => {
      isDead = true;
      resolve();
    };
  });
  const step = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (isDead) return await never;
    calls += 1;
    const isLast = calls === dieAt.call;
    if (isLast && dieAt.when === "before") {
      die();
      return await never;
    }
    const result = await work();
    if (isLast) die();
    return isDead ? await never : result;
  };
  const { workers, state, records } = deps;
  const wrapped: SwarmDeps = {
    ...deps,
    workers: {
      checkRuntime: (...args) => step(() => workers.checkRuntime(...args)),
      create: (...args) => step(() => workers.create(...args)),
      restart: (...args) => step(() => workers.restart(...args)),
      status: (...args) => step(() => workers.status(...args)),
      isKnown: (...args) => step(() => workers.isKnown(...args)),
      list: (...args) => step(() => workers.list(...args)),
      remove: (...args) => step(() => workers.remove(...args)),
      startAdapter: (...args) => step(() => workers.startAdapter(...args)),
      stop: (...args) => step(() => workers.stop(...args)),
      follow: async function* (...args) {
        await step(() => Promise.resolve());
        for await (const event of workers.follow(...args)) {
          await step(() => Promise.resolve());
          yield event;
        }
      },
    },
    state: {
      read: () => step(() => state.read()),
      update: (...args) => step(() => state.update(...args)),
      replace: (...args) => step(() => state.replace(...args)),
    },
    records: {
      read: (...args) => step(() => records.read(...args)),
      write: (...args) => step(() => records.write(...args)),
      remove: (...args) => step(() => records.remove(...args)),
    },
  };
  return {
    deps: wrapped,
    died,
    get calls() {
      return calls;
    },
  };
}

test.each(["before", "after"] as const)(
  "whoever runs a swarm may be killed %s any step; resumed, no worker is started twice and none is lost",
  async (when) => {
    let call = 1;
    for (; ; call += 1) {
      using bed = new SwarmBed(undefined, new MemoryState());
      const starts = new Map<string, number>();
      let failsOnce = true;
      bed.workers.onStart = (worker) => {
        const { name } = worker.request;
        starts.set(name, (starts.get(name) ?? 0) + 1);
        if (name.endsWith("-b") && failsOnce) {
          failsOnce = false;
          story(worker, "US-001", "failed");
          worker.finish(1);
        } else doAll(worker);
      };
      await bed.begin(await bed.tasks("a", "b", "c"));
      const life = mortal(bed.deps, { call, when });
      const first = driveSwarm(life.deps, bed.run({ maxWorkers: 2 }), new AbortController().signal);
      const outcome = await Promise.race([first.then(() => "done"), life.died.then(() => "killed")]);
      // The second one is killed at the same step too, and the next one gets through.
      const second = mortal(bed.deps, { call, when });
      const planFor = () => bed.run().plan;
      const resumed = prepareResume(second.deps, { named: [], planFor, readTask: bed.readTask }).then(() =>
        driveSwarm(second.deps, bed.run({ isResumed: true }), new AbortController().signal),
      );
      await Promise.race([resumed, second.died]);
      // Twice: the worker that fails once may have done so only now.
      for (const _ of [1, 2]) {
        await bed.resume();
        await bed.drive({ isResumed: true });
      }
      expect(bed.statuses(), `killed ${when} call ${call}`).toEqual({
        a: "completed",
        b: "completed",
        c: "completed",
      });
      expect(Object.fromEntries(starts), `killed ${when} call ${call}`).toEqual({
        "aimi-swarm-a": 1,
        "aimi-swarm-b": 2,
        "aimi-swarm-c": 1,
      });
      for (const name of ["a", "b", "c"]) {
        expect(bed.entry(name)).toMatchObject({
          containerId: bed.worker(name).containerId,
          prUrl: "https://example.com/pull/1",
          storyProgress: { total: 2, completed: 2 },
        });
      }
      if (outcome === "done") break;
    }
    expect(call).toBeGreaterThan(20);
  },
  120_000,
);
