import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkCommand } from "../../core/swarm/approval/check-command.ts";
import { FakeWorkers } from "../../core/swarm/testing/fake-workers.ts";
import { runCli } from "../run-cli.ts";
import { fakeContext } from "../testing/fake-context.ts";

const NAME = "aimi-swarm-login";
const IMAGE = "aimi-sandbox-shop:latest";
const TASKS = ".aimi/tasks/2026-03-01-login-tasks.json";

let project: string;
let workers: FakeWorkers;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-manager-"));
  workers = new FakeWorkers();
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

async function manager(words: readonly string[], env: Record<string, string> = {}) {
  const options = { cwd: project, workers, env };
  let context = fakeContext(options);
  const code = await runCli(["sandbox-manager", ...words], {
    version: "0.0.0",
    makeContext: (globals) => {
      context = fakeContext({ ...options, globals });
      return Promise.resolve(context);
    },
  });
  return { code, stdout: context.stdout.text, stderr: context.stderr.text };
}

async function answer(...words: string[]) {
  const { code, stdout, stderr } = await manager(words);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

const create = (...more: string[]) => answer("create", NAME, IMAGE, TASKS, "feat/login", ...more);

describe("S1-31 sandbox-manager", () => {
  test("S1-4 create makes a container, with Sysbox unless told otherwise, and prints it", async () => {
    expect(await create()).toEqual({
      containerId: expect.stringMatching(/^[0-9a-f]{64}$/),
      name: NAME,
      image: IMAGE,
      network: `${NAME}-net`,
      runtime: "fake",
      resources: { cpus: 2, memory: "4g", swap: "8g" },
    });
    expect(workers.worker(NAME).request).toMatchObject({
      isolation: "sysbox",
      taskFilePath: TASKS,
      branchName: "feat/login",
    });
  });

  test("S1-67 create takes limits from the environment, and refuses wrong ones", async () => {
    const words = ["create", NAME, IMAGE, "--isolation", "container"];
    const made = await manager(words, { AIMI_SANDBOX_CPUS: "1.5", AIMI_SANDBOX_MEMORY: "512m" });
    expect(JSON.parse(made.stdout).resources).toEqual({ cpus: 1.5, memory: "512m", swap: "8g" });
    const wrong = await manager(words, { AIMI_SANDBOX_MEMORY: "much" });
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain("AIMI_SANDBOX_MEMORY");
  });

  test("S1-51 status says what is there, and what is not", async () => {
    const missing = { name: NAME, exists: false, swarmState: "not_found" };
    expect(await answer("status", NAME)).toEqual(missing);
    await create();
    expect(await answer("status", NAME)).toEqual({
      name: NAME,
      exists: true,
      dockerState: "running",
      swarmState: "pending",
      exitCode: null,
      image: IMAGE,
      startedAt: null,
      finishedAt: null,
    });
    workers.worker(NAME).finish(3);
    expect(await answer("status", NAME)).toMatchObject({ swarmState: "failed", exitCode: 3 });
  });

  test.each(["remove", "rm"])("S1-35 %s is no error when nothing is there", async (verb) => {
    await create();
    expect(await answer(verb, NAME)).toEqual({ name: NAME, removed: true });
    expect(await answer(verb, NAME)).toEqual({ name: NAME, removed: true });
    expect(workers.all.size).toBe(0);
  });

  test.each(["list", "ls"])("%s prints all", async (verb) => {
    expect(await answer(verb)).toEqual({ containers: [] });
    await create();
    expect(await answer(verb)).toEqual({
      containers: [{ name: NAME, status: "pending", created: null, taskFile: TASKS }],
    });
  });

  test.each(["cleanup", "clean"])("S1-35 %s removes what has ended and nothing else", async (verb) => {
    for (const name of ["aimi-a", "aimi-b", "aimi-c", "aimi-d"]) await answer("create", name, IMAGE);
    workers.worker("aimi-a").finish(0);
    workers.worker("aimi-b").finish(1);
    workers.worker("aimi-c").dockerState = "paused";
    expect(await answer(verb)).toEqual({ removed: 2, containers: ["aimi-a", "aimi-b"] });
    expect([...workers.all.keys()]).toEqual(["aimi-c", "aimi-d"]);
  });

  test("S1-8 check-runtime asks for Sysbox, and ends with 1 when it is missing", async () => {
    expect(await answer("check-runtime")).toEqual({ available: true, runtime: "sysbox-runc" });
    workers.isolations = ["container"];
    expect(await manager(["check-runtime"])).toMatchObject({ code: 1, stdout: "" });
    expect(await manager(["create", NAME, IMAGE])).toMatchObject({ code: 1 });
    expect(workers.all.size).toBe(0);
  });

  test.each([
    ["create"],
    ["create", NAME],
    ["create", "login", IMAGE],
    ["create", NAME, IMAGE, "--isolation", "none"],
    ["create", NAME, IMAGE, "--privileged"],
    ["status"],
    ["status", "../x"],
    ["remove", "-rf"],
    ["rm", "aimi-a b"],
    ["exec", NAME],
  ])("wrong words end with 1 and make nothing: %s %s %s", async (...words) => {
    expect(await manager(words)).toMatchObject({ code: 1, stdout: "" });
    expect(workers.all.size).toBe(0);
  });

  test("an engine that does not answer is told, with 1", async () => {
    workers.engineError = new AidoError("RUNTIME_UNAVAILABLE", "Docker is not running");
    for (const verb of ["list", "cleanup", "check-runtime"]) {
      expect(await manager([verb])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("not running"),
      });
    }
  });

  test("S1-62 what runs without asking are commands that there are", async () => {
    const approved = [
      ["create", NAME, IMAGE, TASKS, "feat/login"],
      ["status", NAME],
      ["list"],
      ["ls"],
      ["cleanup"],
      ["clean"],
      ["check-runtime"],
      ["remove", NAME],
      ["rm", NAME],
      ["help"],
    ];
    for (const words of approved) {
      const command = ["aido", "sandbox-manager", ...words];
      expect(await checkCommand(command, { isInside: async () => false })).toMatchObject({ approved: true });
      expect((await manager(words)).code).toBe(0);
    }
  });
});
