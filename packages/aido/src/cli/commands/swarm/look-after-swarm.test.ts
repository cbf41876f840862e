import { readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeDriverLock } from "../../../core/swarm/records/driver-lock.ts";
import { SwarmDirectory } from "../../../core/swarm/records/swarm-directory.ts";
import { complete, doAll, story } from "../../../core/swarm/testing/swarm-bed.ts";
import { SwarmCli } from "../../testing/swarm-cli.ts";

let cli: SwarmCli;
beforeEach(() => {
  cli = new SwarmCli();
});
afterEach(() => cli[Symbol.dispose]());

test("S1-48 S1-50 S1-70 status compares with the engine, and says so when there is none", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const { base, ended } = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  await ended;
  cli.workers.engineError = new AidoError("RUNTIME_UNAVAILABLE", "The engine does not answer");
  const old = await cli.aido(["swarm", "status"]);
  expect(old).toMatchObject({ code: 0, stderr: expect.stringContaining("this is what was known last") });
  expect(old.stdout).toContain("running");
  expect((await cli.aido(["swarm-list"])).stdout).toBe("aimi-swarm-a\trunning\n");
  cli.workers.engineError = undefined;
  doAll(cli.workers.worker("aimi-swarm-a"));
  const { stdout } = await cli.aido(["swarm", "status"]);
  expect(stdout.split("\n")[1]).toMatch(/completed {2,}2\/2 {2,}https:\/\/example.com\/pull\/1/);
  expect(JSON.parse((await cli.aido(["swarm-status"])).stdout).containers[0].status).toBe("completed");
});

test("S1-48 S1-53 swarm-list finds out that a container is gone", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const { base, ended } = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  await ended;
  cli.workers.all.clear();
  expect((await cli.aido(["swarm-list"])).stdout).toBe("aimi-swarm-a\tfailed\n");
});

test("stop ends workers by their short names, cleanup removes what has ended", async () => {
  cli.task("a");
  cli.task("b");
  cli.workers.onStart = undefined;
  const { ended } = cli.start(["swarm", "--all"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running", "b running"]), 10_000);
  expect(await cli.aido(["swarm", "stop", "a", "--grace", "1s"])).toMatchObject({ code: 0 });
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a stopped", "b running"]), 10_000);
  expect(cli.workers.worker("aimi-swarm-a").stops).toEqual([1000]);
  doAll(cli.workers.worker("aimi-swarm-b"));
  expect(await ended).toBe(1);
  expect(await cli.aido(["swarm", "stop", "z"])).toMatchObject({ code: 4 });
  expect(await cli.aido(["swarm", "cleanup"])).toMatchObject({
    code: 0,
    stdout: "aimi-swarm-a\naimi-swarm-b\n",
  });
  expect(cli.workers.all.size).toBe(0);
  expect(cli.onDisk().containers).toEqual([]);
});

test.each(["swarm", "swarm resume", "swarm status", "swarm stop", "swarm cleanup"])(
  "`aido %s` leaves a broken or newer state as it is",
  async (command) => {
    cli.task("a");
    for (const text of ['{"swarmId":', JSON.stringify({ version: 9 })]) {
      const path = join(cli.bed.project, ".aimi/swarm-state.json");
      writeFileSync(path, text);
      const { code, stderr } = await cli.aido(command.split(" "));
      expect(code).toBeGreaterThan(0);
      expect(stderr).toContain("left as it is");
      expect(readFileSync(path, "utf8")).toBe(text);
    }
    expect(cli.workers.all.size).toBe(0);
  },
);

test("the driver's lock names the process that holds it, and goes with it", async () => {
  const directory = new SwarmDirectory(cli.bed.project);
  {
    await using _lock = await takeDriverLock(directory, { pid: process.ppid, now: new Date() });
    await expect(takeDriverLock(directory, { pid: 1, now: new Date() })).rejects.toMatchObject({
      code: "SWARM_ACTIVE",
      message: `Another aido runs this swarm already (process ${process.ppid})`,
    });
  }
  await using again = await takeDriverLock(directory, { pid: 1, now: new Date() });
  expect(again).toBeDefined();
});

test("whoever only looks at a swarm is waited for, and does not pass for its driver", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const first = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  first.base.signals.send("SIGINT");
  await first.ended;
  const driver = join(cli.bed.project, ".aimi/swarm/driver.json");
  const before = JSON.parse(readFileSync(driver, "utf8"));
  expect(before).toMatchObject({ pid: process.pid, isOver: true });
  const { follow } = cli.workers;
  let look = () => {};
  const looked = new Promise<void>((resolve) => {
    look = resolve;
  });
  let isLooking = false;
  cli.workers.follow = async function* (...args) {
    isLooking = true;
    await looked;
    yield* follow.apply(cli.workers, args);
  };
  const status = cli.aido(["swarm", "status"]);
  await vi.waitFor(() => expect(isLooking).toBe(true), 10_000);
  expect(JSON.parse(readFileSync(driver, "utf8"))).toEqual(before);
  cli.workers.follow = follow;
  const resumed = cli.start(["swarm", "resume"]);
  doAll(cli.workers.worker("aimi-swarm-a"));
  // The other one has asked for the lock by then, or asks later: it gets it in both cases.
  await vi.waitFor(() => expect(flockWaits(cli.bed.project)).toBe(true), 10_000);
  look();
  expect(await status).toMatchObject({ code: 0 });
  expect(await resumed.ended, resumed.base.stderr.text).toBe(0);
});

/** Whether a process waits for the driver's lock: somebody's `flock` with a time limit has its file open. */
function flockWaits(project: string): boolean {
  const lock = realpathSync(join(project, ".aimi/swarm/driver.lock"));
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        const isFlock = readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("flock\0");
        return isFlock && readlinkSync(`/proc/${pid}/fd/3`) === lock;
      } catch {
        return false;
      }
    });
}

test("a swarm's own budgets and width hold for whoever resumes it", async () => {
  for (const name of ["a", "b"]) cli.task(name);
  cli.workers.onStart = (worker) => {
    worker.onStop = () => complete(worker, { status: "stopped" }, 130);
    story(worker, "US-001", "in_progress", { usage: { turns: 5, inputTokens: 0, outputTokens: 0 } });
  };
  const { code, stderr } = await cli.aido(["swarm", "--all", "--max", "1", "--swarm-max-turns", "5", "-q"]);
  expect({ code, stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("5 of 5 turns are used"),
  });
  expect(cli.statuses()).toEqual(["a stopped", "b pending"]);
  cli.workers.all.clear();
  expect((await cli.aido(["swarm", "resume", "-q"])).stderr).toContain("turns are used");
  expect(cli.workers.all.size).toBe(0);
  cli.workers.onStart = doAll;
  expect((await cli.aido(["swarm", "resume", "--swarm-max-turns", "500"])).code).toBe(0);
});
