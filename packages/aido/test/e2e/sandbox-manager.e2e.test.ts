import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { docker } from "../backends/docker-cli.ts";
import { inspect, networks } from "../swarm/engine-looks.ts";
import { makeWorkerImage } from "../swarm/workers-bed.ts";
import { AidoProcess } from "./aido-process.ts";

const TASKS = ".aimi/tasks/2026-03-01-login-tasks.json";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
let project: string;
let name: string;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-manager-e2e-"));
  name = `aimi-swarm-manager-${process.pid}-${randomBytes(3).toString("hex")}`;
});
afterEach(async () => {
  for (const each of [name, `${name}-b`]) await manager("remove", each);
  const left = await docker(["ps", "-aq", "--filter", `name=${name}`]);
  const leftNetworks = await networks(name);
  rmSync(project, { recursive: true, force: true });
  expect([left, leftNetworks]).toEqual(["", ""]);
});

/** The built command line, as a script of another tool calls it: JSON on standard output, else a message and 1. */
async function manager(...words: string[]) {
  const env = {
    PATH: process.env["PATH"],
    HOME: project,
    AIMI_SANDBOX_MEMORY: "256m",
    AIMI_SANDBOX_SWAP: "512m",
  };
  await using running = new AidoProcess(["sandbox-manager", ...words], { cwd: project, env });
  const { code, stdout, stderr } = await running.end();
  return { code, stderr, said: stdout === "" ? undefined : JSON.parse(stdout) };
}

const create = (...words: string[]) => manager("create", ...words, "--isolation", "container");

test("S1-4 S1-31 S1-32 create makes the container that the engine shows, status and list tell of it, remove takes it with its network", async () => {
  const first = await create(name, made.image, TASKS, "feat/login");
  expect(first).toMatchObject({
    code: 0,
    stderr: "",
    said: { name, image: made.image, network: `${name}-net`, resources: { memory: "256m", swap: "512m" } },
  });
  const known = await inspect(name);
  expect(known.Id).toBe(first.said.containerId);
  expect(known.HostConfig).toMatchObject({
    Privileged: false,
    Memory: 256 * 2 ** 20,
    MemorySwap: 512 * 2 ** 20,
  });
  expect(known.Config.Labels).toMatchObject({ "org.aimi.sandbox": "true", "org.aimi.task-file": TASKS });
  expect((await manager("status", name)).said).toMatchObject({
    ...{ name, exists: true, dockerState: "running", swarmState: "pending", exitCode: null },
  });
  expect((await manager("list")).said.containers).toMatchObject([
    { name, status: "pending", taskFile: TASKS },
  ]);
  const again = await create(name, made.image, TASKS, "feat/login");
  expect(again).toMatchObject({ code: 1, said: undefined, stderr: expect.stringContaining(name) });
  expect((await inspect(name)).Id).toBe(first.said.containerId);
  for (const _time of ["first", "second"])
    expect(await manager("remove", name)).toMatchObject({ code: 0, said: { name, removed: true } });
  expect((await manager("status", name)).said).toEqual({ name, exists: false, swarmState: "not_found" });
  expect(await networks(name)).toBe("");
});

test("S1-31 S1-35 S1-69 cleanup removes the container that has ended, and leaves the one that has not", async () => {
  await create(name, made.image);
  await create(`${name}-b`, made.image);
  await docker(["kill", name]);
  expect((await manager("status", name)).said).toMatchObject({ dockerState: "exited", swarmState: "failed" });
  expect((await manager("cleanup")).said).toEqual({ removed: 1, containers: [name] });
  expect((await manager("ls")).said.containers).toMatchObject([{ name: `${name}-b`, status: "pending" }]);
});

test("S1-8 S1-31 check-runtime ends with 1 and what to install where Sysbox is not, and create makes nothing then", async () => {
  for (const words of [["check-runtime"], ["create", name, made.image]]) {
    const { code, stderr, said } = await manager(...words);
    expect({ code, said }).toEqual({ code: 1, said: undefined });
    expect(stderr).toContain("Install Sysbox");
  }
});
