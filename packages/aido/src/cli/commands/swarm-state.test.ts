import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkSchema } from "../../core/swarm/state/check-schema.ts";
import { SWARM_STATE_SCHEMA } from "../../core/swarm/state/swarm-state-schema.ts";
import { FakeWorkers } from "../../core/swarm/testing/fake-workers.ts";
import { runCli } from "../run-cli.ts";
import { fakeContext } from "../testing/fake-context.ts";

const COUNTS = { total: 5, completed: 2, failed: 0, inProgress: 1, pending: 2 };
const ADD = ["swarm-add", "4f0c2b9a81de", "aimi-a", ".aimi/tasks/a-tasks.json", "feat/a"];

let project: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-swarm-"));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

/** An engine that has every container as it was registered. */
const workers = new FakeWorkers();
workers.status = async (name) => ({ name, exists: true, swarmState: "pending" });

async function aido(argv: readonly string[], cwd = project) {
  let context = fakeContext({ cwd });
  const code = await runCli(argv, {
    version: "0.0.0",
    makeContext: (globals) => {
      context = fakeContext({ cwd, globals, workers });
      return Promise.resolve(context);
    },
  });
  return { code, stdout: context.stdout.text, stderr: context.stderr.text };
}

async function ok(argv: readonly string[]) {
  const { code, stdout, stderr } = await aido(argv);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

const onDisk = () => JSON.parse(readFileSync(join(project, ".aimi/swarm-state.json"), "utf8"));

test("S1-39 swarm-init prints the state that it makes", async () => {
  const printed = JSON.parse(await ok(["swarm-init"]));
  expect(printed).toEqual(onDisk());
  expect(checkSchema(printed, SWARM_STATE_SCHEMA)).toEqual([]);
  expect(printed.containers).toEqual([]);
  expect(JSON.parse(await ok(["swarm-init"])).swarmId).not.toBe(printed.swarmId);
});

test("S1-39 swarm-init refuses while containers are pending or running, unless it is forced", async () => {
  await ok(["swarm-init"]);
  await ok(ADD);
  const { code, stdout, stderr } = await aido(["swarm-init"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("1 pending or running container\n");
  expect(onDisk().containers).toHaveLength(1);
  expect(JSON.parse(await ok(["swarm-init", "--force"])).containers).toEqual([]);
});

test("S1-40 S1-41 swarm-add and swarm-update print the entry", async () => {
  await ok(["swarm-init"]);
  expect(JSON.parse(await ok(ADD))).toMatchObject({
    containerName: "aimi-a",
    status: "pending",
    acpPid: null,
  });
  const url = "https://git.example/pull/7";
  const progress = JSON.stringify(COUNTS);
  const entry = await ok([
    "swarm-update",
    "aimi-a",
    "--status",
    "running",
    "--pr-url",
    url,
    "--story-progress",
    progress,
    "--acp-pid",
    "7",
  ]);
  expect(JSON.parse(entry)).toMatchObject({
    status: "running",
    prUrl: url,
    storyProgress: COUNTS,
    acpPid: 7,
  });
  expect(JSON.parse(await ok(["swarm-update", "aimi-a", "--acp-pid", "null"]))).toEqual(
    onDisk().containers[0],
  );
  expect(onDisk().containers[0].acpPid).toBeNull();
});

test("S1-43 swarm-status prints the whole state, indented, with and without --json", async () => {
  await ok(["swarm-init"]);
  await ok(ADD);
  const text = await ok(["swarm-status"]);
  expect(text).toBe(`${JSON.stringify(onDisk(), undefined, 2)}\n`);
  expect(await ok(["swarm-status", "--json"])).toBe(text);
});

test("S1-44 swarm-list prints name, tab and status of each", async () => {
  await ok(["swarm-init"]);
  expect(await ok(["swarm-list"])).toBe("");
  await ok(ADD);
  await ok(ADD.with(2, "aimi-b"));
  await ok(["swarm-update", "aimi-b", "--status", "failed"]);
  expect(await ok(["swarm-list"])).toBe("aimi-a\tpending\naimi-b\tfailed\n");
  expect(await ok(["swarm-list", "-q"])).toBe("aimi-a\naimi-b\n");
  expect(JSON.parse(await ok(["swarm-list", "--json"]))).toEqual([
    { containerName: "aimi-a", status: "pending" },
    { containerName: "aimi-b", status: "failed" },
  ]);
});

test("S1-42 S1-45 swarm-remove and swarm-cleanup say what they removed", async () => {
  await ok(["swarm-init"]);
  await ok(ADD);
  await ok(ADD.with(2, "aimi-b"));
  expect(await ok(["swarm-cleanup"])).toBe('{"removed":0}\n');
  await ok(["swarm-update", "aimi-b", "--status", "stopped"]);
  expect(await ok(["swarm-cleanup"])).toBe('{"removed":1}\n');
  expect(await ok(["swarm-remove", "aimi-a"])).toBe("Removed container: aimi-a\n");
  expect(onDisk().containers).toEqual([]);
});

test.each([
  [["swarm-add", "x"]],
  [["swarm-add", "x", "aimi-b", "t.json", "b"]],
  [ADD],
  [[...ADD, "more"]],
  [["swarm-update"]],
  [["swarm-update", "aimi-a"]],
  [["swarm-update", "aimi-a", "--status"]],
  [["swarm-update", "aimi-a", "--status", "done"]],
  [["swarm-update", "aimi-none", "--status", "failed"]],
  [["swarm-update", "aimi-a", "--nothing", "x"]],
  [["swarm-remove"]],
  [["swarm-remove", "aimi-none"]],
  [["swarm-remove", "../x"]],
  [["swarm-init", "--dir", "nowhere"]],
  [["swarm-list", "--dir", "/nowhere/at/all"]],
])("S1-38 %j is exit code 1, a message on standard error, and no change", async (argv) => {
  await ok(["swarm-init"]);
  await ok(ADD);
  const before = onDisk();
  const { code, stdout, stderr } = await aido(argv);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^aido: .{10,}/);
  expect(onDisk()).toEqual(before);
});

test.each(["swarm-status", "swarm-list", "swarm-cleanup"])(
  "S1-38 %s without a swarm is exit code 1",
  async (name) => {
    const { code, stderr } = await aido([name]);
    expect(code).toBe(1);
    expect(stderr).toContain("aido swarm-init");
    expect(existsSync(join(project, ".aimi"))).toBe(false);
  },
);

test("S1-37 --dir names the project", async () => {
  mkdirSync(join(project, "shop"));
  await ok(["swarm-init", "--dir", "shop"]);
  expect(existsSync(join(project, "shop/.aimi/swarm-state.json"))).toBe(true);
  expect((await aido(["swarm-list", "--dir", join(project, "shop")], "/")).code).toBe(0);
});

test("what another tool wrote into the state cannot act on the terminal", async () => {
  await ok(["swarm-init"]);
  await ok(ADD);
  const state = onDisk();
  state.containers[0].taskFilePath = "x\u001b[2J";
  writeFileSync(join(project, ".aimi/swarm-state.json"), JSON.stringify(state));
  const text = await ok(["swarm-status"]);
  expect(text).not.toContain("\u001b");
  expect(JSON.parse(text)).toEqual(state);
});

test("help is exit code 0 and misuse of other commands stays exit code 2", async () => {
  expect((await aido(["swarm-update", "--help"])).code).toBe(0);
  expect((await aido(["inspect"])).code).toBe(2);
});
