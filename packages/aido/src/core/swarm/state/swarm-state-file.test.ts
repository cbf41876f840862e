import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { addContainer, startSwarm, updateContainer } from "./change-state.ts";
import { FileLock } from "./file-lock.ts";
import type { SwarmState } from "./swarm-state.ts";
import { SwarmStateFile } from "./swarm-state-file.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const swarm = { swarmId: "7216b46d-9ce4-4966-9cdd-9dddd1e100a8", now: NOW, force: false };
const container = (containerName: string) => ({
  containerId: "4f0c2b9a81de",
  containerName,
  taskFilePath: ".aimi/tasks/a-tasks.json",
  branchName: "feat/a",
});

let project: string;
let file: SwarmStateFile;
const path = (...names: string[]) => join(project, ".aimi", ...names);
const add = (name: string, to = file) => to.update((state) => addContainer(state, container(name), NOW));
const start = (on = file) => on.replace((before) => startSwarm(before, swarm));
const names = ({ containers }: SwarmState) => containers.map(({ containerName }) => containerName);

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-swarm-"));
  file = new SwarmStateFile({ project });
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

test("S1-37 S1-46 the state and its lock lie in .aimi, which is made when it is missing", async () => {
  const state = await start();
  expect(readdirSync(path()).sort()).toEqual([".state.lock", "swarm-state.json"]);
  expect(JSON.parse(readFileSync(path("swarm-state.json"), "utf8"))).toEqual(state);
  expect(statSync(path(".state.lock")).mode & 0o777).toBe(0o600);
  expect(await file.read()).toEqual(state);
});

test("S1-43 without a swarm nothing is read, changed or made", async () => {
  await expect(file.read()).rejects.toMatchObject({ code: "SWARM_NOT_FOUND" });
  await expect(add("aimi-a")).rejects.toMatchObject({ code: "SWARM_NOT_FOUND" });
  expect(existsSync(path())).toBe(false);
  mkdirSync(path());
  await expect(file.read()).rejects.toMatchObject({ code: "SWARM_NOT_FOUND" });
});

test("S1-10 S1-38 updates at once wait for each other and none is lost", async () => {
  await start();
  const all = Array.from({ length: 20 }, (_, index) => `aimi-${index}`);
  await Promise.all(all.map((name) => add(name)));
  expect(names(await file.read()).sort()).toEqual(all.sort());
});

test("S1-47 a change replaces the file in one step: who has it open keeps the old one, whole", async () => {
  const before = await start();
  linkSync(path("swarm-state.json"), path("old"));
  await add("aimi-a");
  expect(JSON.parse(readFileSync(path("old"), "utf8"))).toEqual(before);
  expect(names(await file.read())).toEqual(["aimi-a"]);
});

test("S1-49 what does not fit the schema is not written", async () => {
  const before = await start();
  const wrong = file.update((state) => ({ ...state, swarmId: "x" }));
  await expect(wrong).rejects.toMatchObject({ code: "INTERNAL_SERVER_ERROR" });
  expect(await file.read()).toEqual(before);
});

test("a change that fails leaves the file, no temporary one, and no lock", async () => {
  await start();
  await add("aimi-a");
  const before = readFileSync(path("swarm-state.json"));
  await expect(add("aimi-a")).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
  await expect(file.update(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(readFileSync(path("swarm-state.json"))).toEqual(before);
  expect(readdirSync(path()).sort()).toEqual([".state.lock", "swarm-state.json"]);
  execFileSync("flock", ["-n", path(".state.lock"), "true"]);
});

test("S1-47 what a process left that was killed while it wrote is removed by the next change", async () => {
  await start();
  writeFileSync(path("swarm-state.json.0123456789ab.tmp"), '{"swarmId":');
  writeFileSync(path("swarm-state.json.mine"), "stays");
  expect(names(await file.read())).toEqual([]);
  await add("aimi-a");
  expect(readdirSync(path()).sort()).toEqual([".state.lock", "swarm-state.json", "swarm-state.json.mine"]);
});

test("S1-10 while another tool's flock holds the lock, changes wait for a limited time and reads do not", async () => {
  await start();
  const holder = spawn("flock", [path(".state.lock"), "sh", "-c", "echo held; read line"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    await once(holder.stdout, "data");
    const hurried = new SwarmStateFile({ project, lockWaitMs: 50 });
    await expect(add("aimi-a", hurried)).rejects.toMatchObject({
      code: "SWARM_STATE_BUSY",
      message: expect.stringContaining(".state.lock for 0.05 s"),
    });
    expect(names(await hurried.read())).toEqual([]);
    const waiting = add("aimi-b");
    holder.stdin.end("\n");
    expect(names(await waiting)).toEqual(["aimi-b"]);
  } finally {
    holder.kill("SIGKILL");
  }
});

test("S1-10 while a change is made, another tool's flock waits", async () => {
  await start();
  const flock = () => execFileSync("flock", ["-n", path(".state.lock"), "true"], { stdio: "ignore" });
  await file.update(async (state) => {
    expect(flock).toThrow();
    return updateContainer(
      addContainer(state, container("aimi-a"), NOW),
      "aimi-a",
      { status: "running" },
      NOW,
    );
  });
  flock();
});

test("a wait for the lock can be given up", async () => {
  await start();
  await using _held = await FileLock.take(path(".state.lock"), { shown: "lock", waitMs: 1000 });
  const abort = new AbortController();
  const waiting = add("aimi-a", new SwarmStateFile({ project, signal: abort.signal }));
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
});

test("S1-46 a lock file that was removed meanwhile locks nothing: the new one is taken", async () => {
  await start();
  const first = await FileLock.take(path(".state.lock"), { shown: "lock", waitMs: 1000 });
  const second = FileLock.take(path(".state.lock"), { shown: "lock", waitMs: 10_000 });
  const { ino } = statSync(path(".state.lock"));
  await expect.poll(() => readFileSync("/proc/locks", "utf8")).toMatch(new RegExp(`-> FLOCK .*:${ino} `));
  rmSync(path(".state.lock"));
  await first[Symbol.asyncDispose]();
  await using _second = await second;
  expect(() => execFileSync("flock", ["-n", path(".state.lock"), "true"], { stdio: "ignore" })).toThrow();
});

test("without a flock program the message says what to install", async () => {
  mkdirSync(path());
  const taken = FileLock.take(path(".state.lock"), { shown: "lock", waitMs: 1000, searchPath: path() });
  await expect(taken).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
    message: "There is no flock program on this machine",
    hint: expect.stringContaining("util-linux"),
  });
});

async function expectRefused(content: string | Uint8Array, code: string): Promise<void> {
  writeFileSync(path("swarm-state.json"), content);
  await expect(file.read()).rejects.toMatchObject({
    code,
    message: expect.stringContaining("swarm-state.json"),
  });
  await expect(add("aimi-x")).rejects.toMatchObject({ code });
  await expect(file.replace((before) => startSwarm(before, { ...swarm, force: true }))).rejects.toMatchObject(
    { code },
  );
  expect(readFileSync(path("swarm-state.json"))).toEqual(Buffer.from(content));
}

test("a file that is cut off is an error wherever it is cut, and is left as it is", async () => {
  await start();
  await add("aimi-a");
  const whole = readFileSync(path("swarm-state.json"));
  for (const length of [0, 1, 10, whole.length >> 1, whole.length - 3])
    await expectRefused(whole.subarray(0, length), "SWARM_STATE_BROKEN");
  for (let length = 0; length < whole.length - 2; length += 1) {
    writeFileSync(path("swarm-state.json"), whole.subarray(0, length));
    await expect(file.read()).rejects.toMatchObject({ code: "SWARM_STATE_BROKEN" });
  }
});

test("a file of a newer version is an error that says so, and is left as it is", async () => {
  const state = await start();
  await expectRefused(JSON.stringify({ ...state, schemaVersion: 2 }), "SWARM_STATE_TOO_NEW");
  await expectRefused(JSON.stringify({ ...state, $schema: "x/v2" }), "SWARM_STATE_TOO_NEW");
  const [one] = addContainer(state, container("aimi-a"), NOW).containers;
  await expectRefused(
    JSON.stringify({ ...state, containers: [{ ...one, host: "x" }] }),
    "SWARM_STATE_TOO_NEW",
  );
});

test("a file that fits no schema is an error that names the field, and is left as it is", async () => {
  const state = await start();
  const [one] = addContainer(state, container("aimi-a"), NOW).containers;
  await expectRefused(JSON.stringify({ ...state, swarmId: 7 }), "SWARM_STATE_BROKEN");
  await expect(file.read()).rejects.toThrow("swarmId is not a string");
  await expectRefused(JSON.stringify({ ...state, containers: [one, one] }), "SWARM_STATE_BROKEN");
  await expect(file.read()).rejects.toThrow("containers[1].containerName is there twice: aimi-a");
  await expectRefused("[]", "SWARM_STATE_BROKEN");
  await expectRefused(new Uint8Array([0x22, 0xff, 0x22]), "SWARM_STATE_BROKEN");
});

test("an .aimi that is a link or a file is refused, and what it leads to is not touched", async () => {
  const elsewhere = join(project, "elsewhere");
  mkdirSync(elsewhere);
  symlinkSync(elsewhere, path());
  await expect(start()).rejects.toMatchObject({ code: "INVALID_PATH" });
  await expect(file.read()).rejects.toMatchObject({ code: "INVALID_PATH" });
  expect(readdirSync(elsewhere)).toEqual([]);
  rmSync(path());
  writeFileSync(path(), "");
  await expect(start()).rejects.toMatchObject({ code: "INVALID_PATH" });
  rmSync(path());
  symlinkSync(join(project, "nowhere"), path());
  await expect(start()).rejects.toMatchObject({ code: "INVALID_PATH" });
  expect(existsSync(join(project, "nowhere"))).toBe(false);
});

test.each(["swarm-state.json", ".state.lock"])("a %s that is a link or a pipe is refused", async (name) => {
  const state = await start();
  const victim = join(project, "victim");
  const use = async () => {
    await expect(add("aimi-a")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(start()).rejects.toMatchObject({ code: "INVALID_PATH" });
  };
  writeFileSync(victim, JSON.stringify(state));
  rmSync(path(name));
  symlinkSync(victim, path(name));
  await use();
  expect(readFileSync(victim, "utf8")).toBe(JSON.stringify(state));
  rmSync(path(name));
  symlinkSync(join(project, "nowhere"), path(name));
  await use();
  expect(existsSync(join(project, "nowhere"))).toBe(false);
  rmSync(path(name));
  execFileSync("mkfifo", [path(name)]);
  await use();
});

test("an .aimi that is exchanged for a link while it is used is not followed", async () => {
  await start();
  const elsewhere = join(project, "elsewhere");
  mkdirSync(elsewhere);
  await file.update((state) => {
    renameSync(path(), join(project, "moved"));
    symlinkSync(elsewhere, path());
    return addContainer(state, container("aimi-a"), NOW);
  });
  expect(readdirSync(elsewhere)).toEqual([]);
  expect(readFileSync(join(project, "moved", "swarm-state.json"), "utf8")).toContain("aimi-a");
});

test("what is asked to reconcile is asked before a state is shown, with the lock held, and its answer is kept", async () => {
  await start();
  await add("aimi-a");
  let asked = 0;
  const reconciled = new SwarmStateFile({
    project,
    reconcile: (state) => {
      asked += 1;
      expect(() => execFileSync("flock", ["-n", path(".state.lock"), "true"], { stdio: "ignore" })).toThrow();
      return Promise.resolve(updateContainer(state, "aimi-a", { status: "failed" }, NOW));
    },
  });
  expect((await reconciled.read()).containers[0]?.status).toBe("failed");
  expect((await file.read()).containers[0]?.status).toBe("failed");
  expect(asked).toBe(1);
});
