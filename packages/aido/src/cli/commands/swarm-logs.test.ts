import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addContainer, startSwarm } from "../../core/swarm/state/change-state.ts";
import { SwarmStateFile } from "../../core/swarm/state/swarm-state-file.ts";
import { FakeWorkers } from "../../core/swarm/testing/fake-workers.ts";
import { DEFAULT_WORKER_LIMITS } from "../../core/swarm/workers/worker-limits.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { swarmLogs } from "./swarm-logs.ts";

const SWARM_ID = "3f2a91c0-5b7d-4e21-9c3a-0d1e2f3a4b5c";
const CONTAINER_ID = "0123456789ab";

let project = "";
beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), "aido-swarm-logs-"));
});
afterEach(() => rm(project, { recursive: true, force: true }));

async function setUp(options: { json?: boolean; isStarted?: boolean } = {}) {
  const workers = new FakeWorkers();
  const name = "aimi-swarm-login";
  await workers.create({
    swarmId: SWARM_ID,
    name,
    taskFilePath: ".aimi/tasks/2026-03-01-login-tasks.json",
    branchName: "feat/login",
    image: "aimi-sandbox-shop:latest",
    isolation: "container",
    limits: DEFAULT_WORKER_LIMITS,
  });
  const start = () => workers.startAdapter(name, { request: message("task-request", {}) as never, env: {} });
  if (options.isStarted !== false) await start();
  const context = fakeContext({ workers, cwd: project, globals: { json: options.json ?? false } });
  return { workers, worker: workers.worker(name), context, start };
}

function message(type: string, payload: object) {
  return {
    type,
    timestamp: "2026-03-01T10:00:00.000Z",
    swarmId: SWARM_ID,
    containerId: CONTAINER_ID,
    payload,
  };
}

function progress(output: string, more: object = {}) {
  return message("progress-update", { storyId: "US-001", status: "in_progress", output, ...more });
}

const TIME = new Date("2026-03-01T10:00:00.000Z").toTimeString().slice(0, 8);

describe("aido swarm logs", () => {
  test("shows messages and logs as lines, and how the worker ended", async () => {
    const { worker, context } = await setUp();
    worker.say(progress("Reading the form\nand its tests", { changedFiles: ["a.ts", "b.ts"] }));
    worker.say(progress("thinking", { storyId: "US-000" }));
    worker.say(
      progress("", { storyId: "US-000", usage: { turns: 3, inputTokens: 1500, outputTokens: 500 } }),
    );
    worker.write("cloning into /workspace\n", "stderr");
    worker.say(
      message("completion", {
        status: "completed",
        prUrl: "https://x.test/pull/1",
        errors: ["US-002 failed"],
      }),
    );
    worker.finish(0);
    expect(await swarmLogs(context, "login", {})).toBe(0);
    const indent = " ".repeat(10);
    expect(context.stdout.text.split("\n")).toEqual([
      `${TIME}  US-001 in progress  Reading the form`,
      `${indent}and its tests`,
      `${indent}changed a.ts, b.ts`,
      `${TIME}  thinking`,
      `${TIME}  3 turns, 2k tokens so far`,
      `${TIME}  completed  https://x.test/pull/1`,
      `${indent}US-002 failed`,
      `${indent}cloning into /workspace`,
      "",
    ]);
    expect(context.stderr.text).toBe("-- it ended with exit code 0\n");
  });

  test("without --follow ends with what is there, though the worker runs", async () => {
    const { worker, context } = await setUp();
    worker.say(progress("one"));
    expect(await swarmLogs(context, "aimi-swarm-login", {})).toBe(0);
    expect(context.stdout.text).toBe(`${TIME}  US-001 in progress  one\n`);
    expect(context.stderr.text).toBe("");
    expect(context.signals.listening).toBe(0);
  });

  test("--follow --tail shows the last lines, then all that comes, each once, until the worker ends", async () => {
    const { worker, context } = await setUp();
    for (const text of ["one", "two", "three"]) worker.write(`${text}\n`, "stderr");
    worker.write("fo", "stderr");
    const done = swarmLogs(context, "l", { follow: true, tail: "2" });
    await vi.waitFor(() => expect(context.stdout.text).toContain("three"));
    worker.write("ur\nfive\n", "stderr");
    await vi.waitFor(() => expect(context.stdout.text).toContain("five"));
    worker.finish(1, { signal: "SIGTERM" });
    expect(await done).toBe(0);
    expect(context.stdout.text.match(/\w+/g)).toEqual(["two", "three", "four", "five"]);
    expect(context.stderr.text).toBe("-- it ended with exit code 1, by SIGTERM\n");
  });

  test("--dir is where both the swarm's state and its workers are looked for", async () => {
    const { worker, context } = await setUp();
    worker.write("hello\n", "stderr");
    const asked: (string | undefined)[] = [];
    const elsewhere: typeof context = {
      ...context,
      cwd: tmpdir(),
      withWorkers: (work, from) => {
        asked.push(from);
        return context.withWorkers(work);
      },
    };
    await swarmLogs(elsewhere, "login", { dir: basename(project) });
    expect(asked).toEqual([project]);
    expect(context.stdout.text).toContain("hello");
  });

  test("--tail 0 of a worker that has ended shows no line", async () => {
    const { worker, context } = await setUp();
    worker.write("one\n", "stderr");
    worker.finish(0);
    await swarmLogs(context, "login", { tail: "0" });
    expect(context.stdout.text).toBe("");
  });

  test("--follow waits for a worker that has not started; without it that is said", async () => {
    const { worker, context, start } = await setUp({ isStarted: false });
    await expect(swarmLogs(context, "login", {})).rejects.toMatchObject({
      code: "EXECUTION_NOT_FOUND",
      message: "aimi-swarm-login has not started, so it has written nothing",
    });
    const done = swarmLogs(context, "login", { follow: true });
    await vi.waitFor(() => expect(context.stderr.text).toContain("waiting for it"));
    await start();
    worker.write("hello\n", "stderr");
    worker.finish(0);
    await done;
    expect(context.stdout.text).toContain("hello");
  });

  test("Ctrl-C ends following, and is no failure", async () => {
    const { worker, context } = await setUp();
    worker.write("one\n", "stderr");
    const done = swarmLogs(context, "login", { follow: true });
    await vi.waitFor(() => expect(context.stdout.text).toContain("one"));
    context.signals.send("SIGINT");
    expect(await done).toBe(0);
    expect(context.signals.listening).toBe(0);
  });

  test("--json has a value a line: messages, logs, what is neither, and the end", async () => {
    const { worker, context } = await setUp({ json: true });
    const said = progress("hi");
    worker.say(said);
    worker.write("{broken\n");
    worker.write("log \u001b[2J\n", "stderr");
    worker.finish(undefined);
    await swarmLogs(context, "login", {});
    expect(context.stdout.text).toMatch(/^[\n -~]*$/);
    const values = context.stdout.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(values).toEqual([
      { type: "message", message: said },
      { type: "invalid", problem: expect.stringContaining("is not JSON"), text: "{broken" },
      { type: "log", text: "log \u001b[2J" },
      { type: "end", exitCode: null, signal: null, outOfMemory: false },
    ]);
  });

  test("--raw gives each stream's bytes to its own", async () => {
    const { worker, context } = await setUp();
    const bytes = Uint8Array.from([0xff, 0x1b, 0x00, 0x0a]);
    worker.write(bytes);
    worker.write("err", "stderr");
    await swarmLogs(context, "login", { raw: true });
    expect(context.stdout.bytes).toEqual(Buffer.from(bytes));
    expect(context.stderr.text).toBe("err");
  });

  test("no escape reaches the terminal, and a line without end is cut", async () => {
    const { worker, context } = await setUp();
    worker.write(`\u001b]0;evil\u0007${"x".repeat(300_000)}\n`, "stderr");
    worker.say(progress("\u001b[2J\u009b\u202e"));
    worker.write(`${"y".repeat(300_000)}\n`);
    await swarmLogs(context, "login", {});
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(context.stdout.text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(context.stdout.text).toContain("has more than 65536 bytes");
    expect(context.stdout.text.length).toBeLessThan(140_000);
  });

  test("a worker that was removed is told from one that has no container yet and one that never was", async () => {
    const { context } = await setUp();
    const state = startSwarm(undefined, { swarmId: SWARM_ID, now: new Date(), force: false });
    const entry = {
      containerId: CONTAINER_ID,
      taskFilePath: ".aimi/tasks/x-tasks.json",
      branchName: "feat/x",
    };
    let swarm = addContainer(state, { ...entry, containerName: "aimi-swarm-gone" }, new Date());
    swarm = {
      ...swarm,
      containers: swarm.containers.map((one) => ({ ...one, status: "completed" as const })),
    };
    swarm = addContainer(swarm, { ...entry, containerName: "aimi-swarm-next" }, new Date());
    await new SwarmStateFile({ project }).replace(() => swarm);
    await expect(swarmLogs(context, "gone", {})).rejects.toMatchObject({
      message: "aimi-swarm-gone (completed) was removed, and what it wrote with it",
      hint: "What it committed is on feat/x.",
    });
    await expect(swarmLogs(context, "next", {})).rejects.toThrow("is pending: it has no container yet");
    await expect(swarmLogs(context, "never", {})).rejects.toMatchObject({
      code: "CONTAINER_NOT_FOUND",
      hint: "These are: gone, login, next.",
    });
  });

  test.each([
    [{ tail: "x" }, "--tail cannot be"],
    [{ tail: "-1" }, "--tail cannot be"],
    [{ tail: "5", sinceStart: true }, "--tail and --since-start exclude each other"],
    [{ tail: "5", raw: true }, "--tail and --raw exclude each other"],
  ])("%j is refused", async (options, problem) => {
    const { context } = await setUp();
    await expect(swarmLogs(context, "login", options)).rejects.toThrow(problem);
  });
});
