import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeDriverLock } from "../../../core/swarm/records/driver-lock.ts";
import { SwarmDirectory } from "../../../core/swarm/records/swarm-directory.ts";
import type { SwarmState } from "../../../core/swarm/state/swarm-state.ts";
import { FakeWorkers } from "../../../core/swarm/testing/fake-workers.ts";
import { GitBed } from "../../../core/swarm/testing/git-bed.ts";
import { complete, doAll } from "../../../core/swarm/testing/swarm-bed.ts";
import { storyJson, taskFileText } from "../../../core/swarm/testing/task-file-text.ts";
import type { GlobalOptions } from "../../context.ts";
import { MemorySink } from "../../output/memory-sink.ts";
import { runCli } from "../../run-cli.ts";
import { fakeContext } from "../../testing/fake-context.ts";
import { FakeKeyboard } from "../../testing/fake-keyboard.ts";

let bed: GitBed;
let workers: FakeWorkers;
beforeEach(() => {
  bed = new GitBed();
  bed.user("remote", "set-url", "origin", "https://example.com/shop.git");
  mkdirSync(join(bed.project, ".aimi/tasks"), { recursive: true });
  workers = new FakeWorkers();
  workers.onStart = doAll;
});
afterEach(() => bed[Symbol.dispose]());

function task(name: string, changes: { branchName?: string; status?: string } = {}): void {
  const stories = ["US-001", "US-002"].map((id) => storyJson(id, { status: changes.status ?? "pending" }));
  const metadata = { title: `Do ${name}`, branchName: changes.branchName ?? `feat/${name}` };
  writeFileSync(join(bed.project, `.aimi/tasks/${name}-tasks.json`), taskFileText(stories, { metadata }));
}

const onDisk = (): SwarmState =>
  JSON.parse(readFileSync(join(bed.project, ".aimi/swarm-state.json"), "utf8"));
const statuses = () =>
  onDisk().containers.map(({ containerName, status }) => `${containerName.slice(11)} ${status}`);

interface Surroundings {
  stdin?: FakeKeyboard;
  env?: Record<string, string>;
  terminal?: boolean;
}

function start(argv: readonly string[], { stdin, env, terminal }: Surroundings = {}) {
  const image = "aimi-sandbox-shop:latest";
  const made = {
    image,
    id: "sha256:ab",
    checksum: "c",
    rebuilt: false,
    bytes: 1,
    slug: "shop",
    madeFrom: [],
    leftOut: [],
  };
  const base = fakeContext({
    cwd: bed.project,
    env: { ...bed.env, ANTHROPIC_API_KEY: "secret-key", GITHUB_TOKEN: "secret-token", ...env },
    workers,
    swarmImages: { ensureBase: async () => made, ensureProject: async () => made },
    settings: [
      { key: "swarm.isolation", value: "sysbox", source: "default" },
      { key: "swarm.maxWorkers", value: 4, source: "default" },
    ],
    ...(stdin === undefined ? {} : { stdin }),
    ...(terminal ? { stderr: new MemorySink(80) } : {}),
  });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const ended = runCli(argv, { version: "1.2.3", makeContext });
  return { base, ended };
}

async function aido(argv: readonly string[], surroundings: Surroundings = {}) {
  const { base, ended } = start(argv, surroundings);
  const code = await ended;
  return { code, stdout: base.stdout.text, stderr: base.stderr.text };
}

test("S1-1 S1-2 S1-64 `aido swarm` runs the one task file there is and ends with a table", async () => {
  task("login");
  const { code, stdout } = await aido(["swarm"]);
  expect(code).toBe(0);
  expect(statuses()).toEqual(["login completed"]);
  const [, row] = stdout.slice(stdout.indexOf("CONTAINER")).split("\n");
  expect(row?.split(/ {2,}/)).toEqual([
    "aimi-swarm-login",
    "login-tasks.json",
    "feat/login",
    "completed",
    "2/2",
    "https://example.com/pull/1",
  ]);
  expect(workers.worker("aimi-swarm-login").request).toMatchObject({
    image: "aimi-sandbox-shop:latest",
    isolation: "sysbox",
  });
});

test("S1-64 several task files without a terminal: the error says what to type", async () => {
  task("login");
  task("cart");
  const { code, stderr } = await aido(["swarm"]);
  expect(code).toBe(2);
  expect(stderr).toContain(".aimi/tasks/cart-tasks.json, .aimi/tasks/login-tasks.json");
  expect(stderr).toContain("aido swarm --all");
  expect(workers.all.size).toBe(0);
});

test("S1-64 several task files on a terminal are asked for", async () => {
  for (const name of ["a", "b", "c"]) task(name);
  const stdin = new FakeKeyboard({ terminal: true }).type("7\n").type("1,3\n");
  const { code, stderr } = await aido(["swarm"], { stdin, terminal: true });
  expect(code).toBe(0);
  expect(stderr).toContain("Write numbers from 1 to 3, or all.");
  expect(statuses()).toEqual(["a completed", "c completed"]);
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
  for (const name of ["a", "b", "c"]) task(name);
  expect((await aido(["swarm", ...argv])).code).toBe(0);
  expect(statuses()).toEqual(expected);
});

test("one that fails is exit code 1, and resume does it again", async () => {
  task("a");
  task("b");
  workers.onStart = (worker) => {
    if (worker.request.name.endsWith("-b")) worker.finish(1);
    else doAll(worker);
  };
  const first = await aido(["swarm", "--all"]);
  expect(first.code).toBe(1);
  expect(first.stderr).toContain("1 of 2 not completed: `aido swarm resume`");
  workers.onStart = doAll;
  const second = await aido(["swarm", "resume"]);
  expect(second.code).toBe(0);
  expect(statuses()).toEqual(["a completed", "b completed"]);
  expect((await aido(["swarm", "resume"])).stderr).toContain("nothing to go on with");
});

test("S1-71 Ctrl-C says that workers go on and how to come back; resume follows them", async () => {
  task("a");
  workers.onStart = undefined;
  const { base, ended } = start(["swarm"]);
  await vi.waitFor(() => expect(statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  expect(await ended).toBe(130);
  expect(base.stderr.text).toContain("aido swarm resume");
  expect(base.stderr.text).toContain("aido swarm stop");
  const again = start(["swarm", "resume"]);
  await vi.waitFor(() => expect(again.base.stdout.text).toContain("resumed"), 10_000).catch(() => undefined);
  complete(workers.worker("aimi-swarm-a"));
  expect(await again.ended).toBe(0);
});

test("S1-64 a swarm at work is refused, appended to, or ended by force", async () => {
  task("a");
  workers.onStart = undefined;
  const first = start(["swarm"]);
  await vi.waitFor(() => expect(statuses()).toEqual(["a running"]), 10_000);
  // While a process runs it.
  expect(await aido(["swarm"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("aido swarm --append"),
  });
  expect(await aido(["swarm", "resume"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("process"),
  });
  expect(await aido(["swarm", "--force"])).toMatchObject({ code: 5 });
  task("b");
  expect(await aido(["swarm", "--append", "--file", "b-tasks.json"])).toMatchObject({ code: 0 });
  await vi.waitFor(() => expect(statuses()).toEqual(["a running", "b running"]), 10_000);
  first.base.signals.send("SIGINT");
  await first.ended;
  // And when nobody does.
  expect(await aido(["swarm", "--all"])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("aido swarm resume"),
  });
  const before = onDisk().swarmId;
  workers.onStart = doAll;
  task("c");
  const appended = start(["swarm", "--append", "--file", "c-tasks.json"]);
  await vi.waitFor(() => expect(statuses()).toContain("c completed"), 10_000);
  expect(onDisk().swarmId).toBe(before);
  appended.base.signals.send("SIGINT");
  await appended.ended;
  expect((await aido(["swarm", "--all", "--force"])).code).toBe(0);
  expect(onDisk().swarmId).not.toBe(before);
  expect(statuses()).toEqual(["a completed", "b completed", "c completed"]);
});

test("S1-65 without Sysbox it is refused, and never replaced by something weaker", async () => {
  task("a");
  workers.isolations = ["container"];
  expect(await aido(["swarm"])).toMatchObject({ code: 9, stderr: expect.stringContaining("sysbox") });
  expect(workers.all.size).toBe(0);
  expect((await aido(["swarm", "--isolation", "container"])).code).toBe(0);
  expect(workers.worker("aimi-swarm-a").request.isolation).toBe("container");
});

test("S1-65 missing keys are warned of", async () => {
  task("a");
  const { stderr } = await aido(["swarm"], { env: { ANTHROPIC_API_KEY: "", GITHUB_TOKEN: "" } });
  expect(stderr).toContain("warning: ANTHROPIC_API_KEY is not set");
  expect(stderr).toContain("warning: GITHUB_TOKEN is not set");
});

test("S1-65 without origin nothing begins", async () => {
  task("a");
  bed.user("remote", "remove", "origin");
  expect(await aido(["swarm"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("git remote add origin"),
  });
});

test("the agent, its budgets and variables reach the adapter, values are written nowhere, and resume keeps them", async () => {
  task("a");
  workers.onStart = (worker) => worker.finish(1);
  const flags = [
    "--agent",
    "acp",
    "--model",
    "m1",
    "--max-turns",
    "7",
    "--max-time",
    "90s",
    "--env",
    "EXTRA",
  ];
  const env = { EXTRA: "secret-extra" };
  await aido(["swarm", ...flags, "--", "my-agent", "--acp"], { env });
  const expected = {
    AIMI_AGENT: "acp",
    AIMI_AGENT_ARGV: '["my-agent","--acp"]',
    AIMI_MODEL: "m1",
    AIMI_MAX_TURNS: "7",
    AIMI_MAX_SECONDS: "90",
    EXTRA: "secret-extra",
    GITHUB_TOKEN: "secret-token",
  };
  expect(workers.worker("aimi-swarm-a").started?.env).toMatchObject(expected);
  const kept = readFileSync(join(bed.project, ".aimi/swarm/aimi-swarm-a.json"), "utf8");
  expect(kept + JSON.stringify(onDisk())).not.toContain("secret");
  workers.onStart = doAll;
  expect((await aido(["swarm", "resume", "--max-turns", "9"], { env })).code).toBe(0);
  expect(workers.worker("aimi-swarm-a").started?.env).toMatchObject({ ...expected, AIMI_MAX_TURNS: "9" });
});

test("how workers are run is not taken from files that the repository brings", async () => {
  task("a");
  workers.onStart = (worker) => worker.finish(1);
  await aido(["swarm", "--isolation", "container", "--env", "EXTRA"], { env: { EXTRA: "x" } });
  bed.user("add", "--force", ".aimi");
  workers.onStart = doAll;
  const { stderr } = await aido(["swarm", "resume"], { env: { EXTRA: "x" } });
  expect(stderr).toContain("is not taken from there");
  expect(workers.worker("aimi-swarm-a").request.isolation).toBe("sysbox");
  expect(workers.worker("aimi-swarm-a").started?.env["EXTRA"]).toBeUndefined();
});

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
  task("a");
  const { code, stderr } = await aido(["swarm", ...argv]);
  expect(code).toBeGreaterThan(0);
  expect(stderr).toContain(message);
  expect(workers.all.size).toBe(0);
});

test("task files that are done are left out; when all are, there is nothing to do", async () => {
  task("a", { status: "completed" });
  expect(await aido(["swarm"])).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing to do") });
  task("b");
  expect((await aido(["swarm", "--all"])).stderr).toContain("a-tasks.json: all of its stories are done");
  expect(statuses()).toEqual(["b completed"]);
});

test("S1-48 S1-50 S1-70 status compares with the engine, and says so when there is none", async () => {
  task("a");
  workers.onStart = undefined;
  const { base, ended } = start(["swarm"]);
  await vi.waitFor(() => expect(statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  await ended;
  workers.engineError = new AidoError("RUNTIME_UNAVAILABLE", "The engine does not answer");
  const old = await aido(["swarm", "status"]);
  expect(old).toMatchObject({ code: 0, stderr: expect.stringContaining("this is what was known last") });
  expect(old.stdout).toContain("running");
  expect((await aido(["swarm-list"])).stdout).toBe("aimi-swarm-a\trunning\n");
  workers.engineError = undefined;
  doAll(workers.worker("aimi-swarm-a"));
  const { stdout } = await aido(["swarm", "status"]);
  expect(stdout.split("\n")[1]).toMatch(/completed {2,}2\/2 {2,}https:\/\/example.com\/pull\/1/);
  expect(JSON.parse((await aido(["swarm-status"])).stdout).containers[0].status).toBe("completed");
});

test("S1-48 S1-53 swarm-list finds out that a container is gone", async () => {
  task("a");
  workers.onStart = undefined;
  const { base, ended } = start(["swarm"]);
  await vi.waitFor(() => expect(statuses()).toEqual(["a running"]), 10_000);
  base.signals.send("SIGINT");
  await ended;
  workers.all.clear();
  expect((await aido(["swarm-list"])).stdout).toBe("aimi-swarm-a\tfailed\n");
});

test("stop ends workers by their short names, cleanup removes what has ended", async () => {
  task("a");
  task("b");
  workers.onStart = undefined;
  const { ended } = start(["swarm", "--all"]);
  await vi.waitFor(() => expect(statuses()).toEqual(["a running", "b running"]), 10_000);
  expect(await aido(["swarm", "stop", "a", "--grace", "1s"])).toMatchObject({ code: 0 });
  await vi.waitFor(() => expect(statuses()).toEqual(["a stopped", "b running"]), 10_000);
  expect(workers.worker("aimi-swarm-a").stops).toEqual([1000]);
  doAll(workers.worker("aimi-swarm-b"));
  expect(await ended).toBe(1);
  expect(await aido(["swarm", "stop", "z"])).toMatchObject({ code: 4 });
  expect(await aido(["swarm", "cleanup"])).toMatchObject({ code: 0, stdout: "aimi-swarm-a\naimi-swarm-b\n" });
  expect(workers.all.size).toBe(0);
  expect(onDisk().containers).toEqual([]);
});

test("--json tells events a line each, errors too", async () => {
  task("a");
  const { stdout } = await aido(["--json", "swarm"]);
  const types = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).type);
  expect(types[0]).toBe("swarm");
  expect(types.at(-1)).toBe("done");
  expect(JSON.parse((await aido(["--json", "swarm", "--max", "x"])).stdout)).toMatchObject({ type: "error" });
});

test.each(["swarm", "swarm resume", "swarm status", "swarm stop", "swarm cleanup"])(
  "`aido %s` leaves a broken or newer state as it is",
  async (command) => {
    task("a");
    for (const text of ['{"swarmId":', JSON.stringify({ version: 9 })]) {
      const path = join(bed.project, ".aimi/swarm-state.json");
      writeFileSync(path, text);
      const { code, stderr } = await aido(command.split(" "));
      expect(code).toBeGreaterThan(0);
      expect(stderr).toContain("left as it is");
      expect(readFileSync(path, "utf8")).toBe(text);
    }
    expect(workers.all.size).toBe(0);
  },
);

test("the driver's lock names the process that holds it, and goes with it", async () => {
  const directory = new SwarmDirectory(bed.project);
  {
    await using _lock = await takeDriverLock(directory, { pid: 4711, now: new Date() });
    await expect(takeDriverLock(directory, { pid: 1, now: new Date() })).rejects.toMatchObject({
      code: "SWARM_ACTIVE",
      message: "Another aido runs this swarm already (process 4711)",
    });
  }
  await using again = await takeDriverLock(directory, { pid: 1, now: new Date() });
  expect(again).toBeDefined();
});
