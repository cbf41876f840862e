import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkSchema } from "../../src/core/swarm/state/check-schema.ts";
import type { SwarmState } from "../../src/core/swarm/state/swarm-state.ts";
import { SWARM_STATE_SCHEMA } from "../../src/core/swarm/state/swarm-state-schema.ts";
import { bundle } from "../processes/bundle.ts";
import { startChild } from "../processes/child.ts";
import { AidoProcess } from "./aido-process.ts";

const SHIPPED = new URL("../../dist/swarm-state.schema.json", import.meta.url);
const PROGRAM = new URL("../processes/swarm-program.ts", import.meta.url);

let project: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-swarm-"));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const path = (name: string) => join(project, ".aimi", name);
const start = (argv: readonly string[]) =>
  new AidoProcess(argv, { cwd: project, env: { PATH: process.env["PATH"], HOME: project } });

async function aido(...argv: string[]) {
  await using running = start(argv);
  running.child.stdin.end();
  return await running.end();
}

function state(): SwarmState {
  const value = JSON.parse(readFileSync(path("swarm-state.json"), "utf8")) as SwarmState;
  expect(checkSchema(value, SWARM_STATE_SCHEMA)).toEqual([]);
  return value;
}

const add = (name: string) => aido("swarm-add", "4f0c2b9a81de", name, ".aimi/tasks/a-tasks.json", "feat/a");

test("S1-10 S1-38 fifty processes at once lose nothing: none of their entries, none of their updates", async () => {
  expect((await aido("swarm-init")).code).toBe(0);
  const names = Array.from({ length: 50 }, (_, index) => `aimi-worker-${index}`);
  const added = await Promise.all(names.map(add));
  expect(added.filter(({ code }) => code !== 0)).toEqual([]);
  expect(
    state()
      .containers.map(({ containerName }) => containerName)
      .sort(),
  ).toEqual([...names].sort());
  const updated = await Promise.all(
    names.map((name, index) =>
      aido("swarm-update", name, "--status", "running", "--acp-pid", String(index + 1)),
    ),
  );
  expect(updated.filter(({ code }) => code !== 0)).toEqual([]);
  const pids = new Map(state().containers.map(({ containerName, acpPid }) => [containerName, acpPid]));
  expect([...pids.values()].every((pid) => pid !== null)).toBe(true);
  for (const [index, name] of names.entries()) expect(pids.get(name)).toBe(index + 1);
  expect(readdirSync(join(project, ".aimi")).sort()).toEqual([".state.lock", "swarm-state.json"]);
});

test("S1-10 the command waits for another tool's flock, which writes meanwhile as it likes", async () => {
  await aido("swarm-init");
  await add("aimi-a");
  // The way of scripts: lock, jq, rename.
  const script = `echo held; read line; jq '.containers[0].status = "running"' ${path("swarm-state.json")} > ${path("x")} && mv ${path("x")} ${path("swarm-state.json")}`;
  const holder = spawn("flock", ["-x", path(".state.lock"), "sh", "-c", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(holder, "close");
  await once(holder.stdout, "data");
  const { ino } = statSync(path(".state.lock"));
  await using update = start(["swarm-update", "aimi-a", "--acp-pid", "7"]);
  update.child.stdin.end();
  await expect
    .poll(() => readFileSync("/proc/locks", "utf8"), { timeout: 30_000 })
    .toMatch(new RegExp(`-> FLOCK .*:${ino} `));
  holder.stdin.end("\n");
  expect((await update.end()).code).toBe(0);
  await ended;
  expect(state().containers[0]).toMatchObject({ status: "running", acpPid: 7 });
});

test("S1-47 a process that is killed in the middle of an update leaves a whole file and no lock", async () => {
  using program = await bundle(PROGRAM);
  await aido("swarm-init");
  await add("aimi-a");
  const before = state();
  {
    await using holder = startChild(program.program, [project, "hold"]);
    await holder.until(1);
    expect(() => execFileSync("flock", ["-n", path(".state.lock"), "true"], { stdio: "ignore" })).toThrow();
    await holder.kill();
  }
  expect(state()).toEqual(before);
  execFileSync("flock", ["-n", path(".state.lock"), "true"]);
  let seen = 0;
  for (let round = 0; round < 12; round += 1) {
    await using writer = startChild(program.program, [project, "count"]);
    // At another place of its work each time.
    await writer.until(2 + round);
    await writer.kill();
    const count = state().containers[0]?.storyProgress.total ?? 0;
    const told = Number(writer.lines.at(-1));
    expect(count).toBeGreaterThanOrEqual(told);
    expect(count).toBeGreaterThan(seen);
    seen = count;
  }
  expect((await aido("swarm-update", "aimi-a", "--status", "failed")).code).toBe(0);
  expect(readdirSync(join(project, ".aimi")).sort()).toEqual([".state.lock", "swarm-state.json"]);
});

test("a state that is cut in half or of a newer version is exit code 1 and stays as it is", async () => {
  await aido("swarm-init");
  await add("aimi-a");
  const whole = readFileSync(path("swarm-state.json"), "utf8");
  const newer = whole.replace("{", '{"schemaVersion":"2",');
  for (const [content, words] of [
    [whole.slice(0, whole.length / 2), "is not a swarm state"],
    [newer, "newer version"],
  ] as const) {
    writeFileSync(path("swarm-state.json"), content);
    for (const argv of [
      ["swarm-status"],
      ["swarm-update", "aimi-a", "--status", "failed"],
      ["swarm-init", "--force"],
    ]) {
      const { code, stdout, stderr } = await aido(...argv);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain(words);
    }
    expect(readFileSync(path("swarm-state.json"), "utf8")).toBe(content);
  }
});

test("S1-49 the schema that aido checks with is part of what is built", () => {
  expect(JSON.parse(readFileSync(SHIPPED, "utf8"))).toEqual(JSON.parse(JSON.stringify(SWARM_STATE_SCHEMA)));
});
