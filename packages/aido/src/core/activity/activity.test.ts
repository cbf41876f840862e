import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import type { Logger } from "../logger.ts";
import { Activity } from "./activity.ts";

describe("the use of sandboxes", () => {
  test("S2-27 is written down behind the use, together, and at most every some seconds", async () => {
    const { activity, clock, writes } = bed();
    for (let use = 0; use < 100; use++) activity.touch(use % 2 === 0 ? "aaaa" : "bbbb");
    expect(writes).toEqual([]);
    await clock.advance(1000);
    expect(writes).toEqual([{ ids: ["aaaa", "bbbb"], atMs: 1000 }]);
    for (let second = 0; second < 10; second++) {
      activity.touch("aaaa");
      await clock.advance(1000);
    }
    expect(writes.slice(1)).toEqual([{ ids: ["aaaa"], atMs: 7000 }]);
    await activity.close();
  });

  test("S2-80 is counted by guards that end once, also when what they guard fails", async () => {
    const { activity } = bed();
    const failing = async () => {
      using _session = activity.begin("aaaa", "session");
      expect(activity.isBusy("aaaa")).toBe(true);
      throw new Error("no");
    };
    await expect(failing()).rejects.toThrow("no");
    expect(activity.isBusy("aaaa")).toBe(false);
    const guards = [activity.begin("aaaa", "files"), activity.begin("aaaa", "session")];
    expect([activity.count(), activity.count("session"), activity.count("connection")]).toEqual([2, 1, 0]);
    for (const guard of [...guards, ...guards]) guard[Symbol.dispose]();
    expect(activity.count()).toBe(0);
    expect(activity.isBusy("aaaa")).toBe(false);
    await activity.close();
  });

  test("goes on being written down while a guard is open, for other processes to see", async () => {
    const { activity, clock, writes } = bed();
    const guard = activity.begin("aaaa", "connection");
    await clock.advance(20_000);
    expect(writes.map(({ atMs }) => atMs)).toEqual([1000, 6000, 11_000, 16_000]);
    guard[Symbol.dispose]();
    await clock.advance(60_000);
    const last = writes.length;
    await clock.advance(60_000);
    expect(writes).toHaveLength(last);
    await activity.close();
  });

  test("is written down when the process closes, and a store that fails is tried again", async () => {
    const { activity, clock, writes, warnings, break: fail } = bed();
    const guard = activity.begin("aaaa", "files");
    fail(true);
    await clock.advance(3000);
    expect(writes).toEqual([]);
    expect(warnings).not.toEqual([]);
    fail(false);
    await clock.advance(1000);
    expect(writes).toHaveLength(1);
    guard[Symbol.dispose]();
    activity.touch("bbbb");
    await activity.close();
    expect(writes.at(-1)?.ids).toEqual(["bbbb"]);
  });
});

function bed() {
  const clock = new HandClock();
  const start = clock.now().getTime();
  const writes: { ids: readonly string[]; atMs: number }[] = [];
  const warnings: string[] = [];
  const ignore = () => undefined;
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: (_fields, message) => warnings.push(message),
    error: ignore,
    child: () => logger,
  };
  let isBroken = false;
  const touch = async (ids: readonly string[], at: Date) => {
    if (isBroken) throw new Error("no store");
    writes.push({ ids, atMs: at.getTime() - start });
  };
  const activity = new Activity({ sandboxes: { touch }, clock, logger });
  return {
    activity,
    clock,
    writes,
    warnings,
    break: (broken: boolean) => {
      isBroken = broken;
    },
  };
}
