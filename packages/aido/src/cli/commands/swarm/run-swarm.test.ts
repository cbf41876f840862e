import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { complete, doAll, fail } from "../../../core/swarm/testing/swarm-bed.ts";
import { FakeKeyboard } from "../../testing/fake-keyboard.ts";
import { SwarmCli } from "../../testing/swarm-cli.ts";

let cli: SwarmCli;
beforeEach(() => {
  cli = new SwarmCli();
});
afterEach(() => cli[Symbol.dispose]());

test("S1-1 S1-2 S1-64 `aido swarm` runs the one task file there is and ends with a table", async () => {
  cli.task("login");
  const { code, stdout } = await cli.aido(["swarm"]);
  expect(code).toBe(0);
  expect(cli.statuses()).toEqual(["login completed"]);
  const [, row] = stdout.slice(stdout.indexOf("CONTAINER")).split("\n");
  expect(row?.split(/ {2,}/)).toEqual([
    "aimi-swarm-login",
    "login-tasks.json",
    "feat/login",
    "completed",
    "2/2",
    "https://example.com/pull/1",
  ]);
  expect(cli.workers.worker("aimi-swarm-login").request).toMatchObject({
    image: "aimi-sandbox-shop:latest",
    isolation: "sysbox",
  });
});

test("S1-64 several task files without a terminal: the error says what to type", async () => {
  cli.task("login");
  cli.task("cart");
  const { code, stderr } = await cli.aido(["swarm"]);
  expect(code).toBe(2);
  expect(stderr).toContain(".aimi/tasks/cart-tasks.json, .aimi/tasks/login-tasks.json");
  expect(stderr).toContain("aido swarm --all");
  expect(cli.workers.all.size).toBe(0);
});

test("S1-64 several task files on a terminal are asked for", async () => {
  for (const name of ["a", "b", "c"]) cli.task(name);
  const stdin = new FakeKeyboard({ terminal: true }).type("7\n").type("1,3\n");
  const { code, stderr } = await cli.aido(["swarm"], { stdin, terminal: true });
  expect(code).toBe(0);
  expect(stderr).toContain("Write numbers from 1 to 3, or all.");
  expect(cli.statuses()).toEqual(["a completed", "c completed"]);
});

test.each([
  [["--file", ".aimi/tasks/b-tasks.json"], ["b completed"]],
  [
    ["--files", "a-tasks.json,c-tasks.json"],
    ["a completed", "c completed"],
  ],
  [
    ["--all", "--max", "1"],
    ["a completed", "b completed", "c completed"],
  ],
  [
    ["run", "--yes"],
    ["a completed", "b completed", "c completed"],
  ],
])("S1-64 %j chooses task files", async (argv, expected) => {
  for (const name of ["a", "b", "c"]) cli.task(name);
  expect((await cli.aido(["swarm", ...argv])).code).toBe(0);
  expect(cli.statuses()).toEqual(expected);
});

test("one that fails is exit code 1, and resume does it again", async () => {
  cli.task("a");
  cli.task("b");
  cli.workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-b")) worker.finish(1);
    else doAll(worker);
  };
  const first = await cli.aido(["swarm", "--all"]);
  expect(first.code).toBe(1);
  expect(first.stderr).toContain("1 of 2 not completed: `aido swarm resume`");
  cli.workers.onStart = doAll;
  const second = await cli.aido(["swarm", "resume"]);
  expect(second.code).toBe(0);
  expect(cli.statuses()).toEqual(["a completed", "b completed"]);
  expect((await cli.aido(["swarm", "resume"])).stderr).toContain("nothing to go on with");
});

test("S1-71 Ctrl-C says that workers go on and how to come back; resume follows them", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const { base, ended } = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  expect(await ended).toBe(130);
  expect(base.stderr.text).toContain("aido swarm resume");
  expect(base.stderr.text).toContain("aido swarm stop");
  const again = cli.start(["swarm", "resume"]);
  await vi.waitFor(() => expect(again.base.stdout.text).toContain("resumed"), 10_000).catch(() => undefined);
  complete(cli.workers.worker("aimi-swarm-a"));
  expect(await again.ended).toBe(0);
});

test("S1-64 a swarm at work is refused, appended to, or ended by force", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const first = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  // While a process runs it.
  expect(await cli.aido(["swarm"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("aido swarm --append"),
  });
  expect(await cli.aido(["swarm", "resume"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("process"),
  });
  expect(await cli.aido(["swarm", "--force"])).toMatchObject({ code: 5 });
  cli.task("b");
  expect(await cli.aido(["swarm", "--append", "--file", "b-tasks.json"])).toMatchObject({ code: 0 });
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running", "b running"]), 10_000);
  first.base.signals.send("SIGINT");
  await first.ended;
  // And when nobody does.
  expect(await cli.aido(["swarm", "--all"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("aido swarm resume"),
  });
  const before = cli.onDisk().swarmId;
  cli.workers.onStart = doAll;
  cli.task("c");
  const appended = cli.start(["swarm", "--append", "--file", "c-tasks.json"]);
  await vi.waitFor(() => expect(cli.statuses()).toContain("c completed"), 10_000);
  expect(cli.onDisk().swarmId).toBe(before);
  appended.base.signals.send("SIGINT");
  await appended.ended;
  expect((await cli.aido(["swarm", "--all", "--force"])).code).toBe(0);
  expect(cli.onDisk().swarmId).not.toBe(before);
  expect(cli.statuses()).toEqual(["a completed", "b completed", "c completed"]);
});

test("--append says when what was added still waits, and runs one that has ended once more", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const { ended } = cli.start(["swarm", "--max", "1"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  cli.task("b");
  expect(await cli.aido(["swarm", "--append", "--file", "b-tasks.json"])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("where it waits until others have ended"),
  });
  fail(cli.workers.worker("aimi-swarm-a"), "AGENT_CRASH", "it fell over");
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a failed", "b running"]), 10_000);
  const again = cli.aido(["swarm", "--append", "--file", "a-tasks.json"]);
  await vi.waitFor(() => expect(cli.statuses()).toContain("a pending"), 10_000);
  cli.workers.onStart = doAll;
  doAll(cli.workers.worker("aimi-swarm-b"));
  expect(await again).toMatchObject({ code: 0 });
  expect(await ended).toBe(0);
  expect(cli.statuses()).toEqual(["b completed", "a completed"]);
}, 30_000);

test.each([
  [["--agent", "acp"], "needs the agent's program"],
  [["login"], "What is"],
  [["--agent", "emacs"], "--agent cannot be"],
  [["--isolation", "none"], "--isolation cannot be"],
  [["--max", "0"], "--max cannot be"],
  [["--max-time", "soon"], "--max-time cannot be"],
  [["--env", "NOT_SET_HERE"], "--env cannot be"],
  [["--force", "--append"], "do not go together"],
  [["--all", "--file", "a-tasks.json"], "do not go together"],
  [["--file", "../../etc/passwd.json"], "is not a task file"],
  [["--file", "none-tasks.json"], "Cannot read the task file"],
])("%j is refused before anything begins", async (argv, message) => {
  cli.task("a");
  const { code, stderr } = await cli.aido(["swarm", ...argv]);
  expect(code).toBeGreaterThan(0);
  expect(stderr).toContain(message);
  expect(cli.workers.all.size).toBe(0);
});

test("task files that are done are left out; when all are, there is nothing to do", async () => {
  cli.task("a", { status: "completed" });
  expect(await cli.aido(["swarm"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("nothing to do"),
  });
  cli.task("b");
  expect((await cli.aido(["swarm", "--all"])).stderr).toContain("a-tasks.json: all of its stories are done");
  expect(cli.statuses()).toEqual(["b completed"]);
});

test("work that origin refused is in its container until it is gone on with or given up", async () => {
  cli.task("a");
  const problem = "The branch is not pushed, and its work is in the container alone: denied";
  cli.workers.onStart = (worker) => {
    worker.files = ["a commit"];
    complete(worker, { status: "failed", errors: [problem] }, 1);
  };
  await cli.aido(["swarm"]);
  const { containerId } = cli.workers.worker("aimi-swarm-a");
  for (const argv of [["swarm"], ["swarm", "--append", "--all"]])
    expect(await cli.aido(argv)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("aido swarm resume a"),
    });
  expect(await cli.aido(["swarm", "resume", "--image", "other:1"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("its image and isolation stay"),
  });
  cli.workers.onStart = doAll;
  expect((await cli.aido(["swarm", "resume"])).code).toBe(0);
  expect(cli.workers.worker("aimi-swarm-a")).toMatchObject({ containerId, files: ["a commit"] });
  expect(cli.onDisk().containers).toMatchObject([{ status: "completed", containerId }]);
});

test("--force asks workers to put their work away before it removes them", async () => {
  cli.task("a");
  cli.workers.onStart = undefined;
  const { base, ended } = cli.start(["swarm"]);
  await vi.waitFor(() => expect(cli.statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  await ended;
  const before = cli.workers.worker("aimi-swarm-a");
  cli.workers.onStart = doAll;
  expect((await cli.aido(["swarm", "--force"])).code).toBe(0);
  expect(before.stops).toEqual([30_000]);
});

test("--detach leaves the swarm to a process with the same settings, for the workers that were asked for", async () => {
  cli.task("a");
  cli.workers.onStart = (worker) => worker.finish(1);
  await cli.aido(["swarm"]);
  cli.task("b");
  const started: (readonly string[])[] = [];
  const startInBackground = (argv: readonly string[]) => {
    started.push(argv);
    writeFileSync(join(cli.bed.project, ".aimi/swarm/driver.json"), JSON.stringify({ pid: 4242 }));
    return { pid: 4242, isRunning: () => true };
  };
  const where = ["--data-dir", "/srv/data", "--config", "/srv/aido.yaml", "--driver", "docker"];
  const argv = [...where, "swarm", "--append", "--file", "b-tasks.json", "--detach"];
  expect(await cli.aido(argv, { startInBackground })).toMatchObject({ code: 0 });
  const resume = ["swarm", "resume", "--dir", cli.bed.project, "--no-build"];
  expect(started).toEqual([["--json", ...where, ...resume, "aimi-swarm-b"]]);
  expect(cli.statuses()).toEqual(["a failed", "b pending"]);
});

test("--json tells events a line each, errors too", async () => {
  cli.task("a");
  const { stdout } = await cli.aido(["--json", "swarm"]);
  const types = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).type);
  expect(types[0]).toBe("swarm");
  expect(types.at(-1)).toBe("done");
  expect(JSON.parse((await cli.aido(["--json", "swarm", "--max", "x"])).stdout)).toMatchObject({
    type: "error",
  });
});
