import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runs, StartRun, UpRequest } from "@aido/sdk";
import { AidoError, type RunRecord, type RunSummary } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { type FakeContextOptions, fakeContext } from "../testing/fake-context.ts";
import { FakeExec } from "../testing/fake-exec.ts";
import { run } from "./run.ts";

const RECORD: RunRecord = {
  id: "abcd1234",
  sandbox: "demo",
  status: "running",
  task: "task.py",
  startedAt: null,
  completedAt: null,
  duration: null,
  exitCode: null,
  container: { id: null, image: "python:3.12-slim" },
  autoDestroy: true,
};
const SUMMARY: RunSummary = {
  sandboxId: "abcd1234",
  status: "completed",
  task: "task.py",
  exitCode: 0,
  durationMs: 5,
  stdout: "outputs/stdout.log",
  stderr: "outputs/stderr.log",
  outputFiles: [],
  missingOutputs: [],
  startedAt: "2026-01-01T00:00:00Z",
  completedAt: "2026-01-01T00:00:00Z",
};

async function setUp(
  summary: Partial<RunSummary> = {},
  options: FakeContextOptions & { runs?: Partial<Runs> } = {},
) {
  const cwd = await mkdtemp(join(tmpdir(), "aido-cli-run-"));
  await writeFile(join(cwd, "task.py"), "print('hi')");
  const task = new FakeExec();
  const started: StartRun[] = [];
  const made: UpRequest[] = [];
  const cancelled: (string | undefined)[] = [];
  const runs: Partial<Runs> = {
    start: (request) => {
      started.push(request);
      return Promise.resolve(RECORD);
    },
    up: (request) => {
      made.push(request);
      return Promise.resolve({ ...RECORD, id: "made5678" });
    },
    logs: () => task.execs.output?.("", "") ?? task.fail(new Error("no output")) ?? (undefined as never),
    wait: () => Promise.resolve({ ...SUMMARY, ...summary }),
    cancel: (sandbox) => {
      cancelled.push(sandbox);
      task.end();
      return Promise.resolve();
    },
    ...options.runs,
  };
  const context = fakeContext({ ...options, cwd, backend: fakeBackend({ runs }) });
  const dispose = () => rm(cwd, { recursive: true, force: true });
  return { context, task, started, made, cancelled, [Symbol.asyncDispose]: dispose };
}

test("the task's output and exit code are passed through", async () => {
  await using it = await setUp({ status: "failed", exitCode: 3 });
  it.task.write("stdout", "out").write("stderr", "err").end();
  expect(await run(it.context, "task.py", {})).toBe(3);
  expect(it.context.stdout.text).toBe("out");
  expect(it.context.stderr.text).toContain("err");
});

test.each([
  [{ status: "timeout", exitCode: 124 }, 124],
  [{ status: "timeout", exitCode: null }, 124],
  [{ status: "failed", exitCode: null, error: "The sandbox was lost" }, 125],
  [{ status: "failed", exitCode: 137 }, 137],
] as [Partial<RunSummary>, number][])("a run that ended as %o exits with %i", async (summary, code) => {
  await using it = await setUp(summary);
  it.task.end();
  expect(await run(it.context, "task.py", {})).toBe(code);
});

test("names that a task chose for its files cannot act on the terminal", async () => {
  await using it = await setUp({ outputFiles: ["a\u001b]0;x\u0007\naido: fine"] });
  it.task.end();
  await run(it.context, "task.py", {});
  expect(it.context.stderr.text).toContain("1 output file(s): a\\x1b]0;x\\x07\\x0aaido: fine");
});

test("with --json the summary is the one value on stdout, the task's output stays in the logs", async () => {
  await using it = await setUp({ exitCode: 0 }, { globals: { json: true } });
  it.task.write("stdout", "out").end();
  await run(it.context, "task.py", {});
  expect(JSON.parse(it.context.stdout.text)).toEqual(SUMMARY);
  expect(it.context.stderr.text).toBe("");
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s cancels the run, waits for its record and exits with %i", async (signal, code) => {
  await using it = await setUp({ status: "failed", exitCode: 143 });
  const done = run(it.context, "task.py", {});
  await it.task.running;
  it.context.signals.send(signal);
  expect(await done).toBe(code);
  expect(it.cancelled).toEqual(["abcd1234"]);
  expect(it.context.signals.listening).toBe(0);
});

test("the second SIGINT quits at once", async () => {
  await using it = await setUp({}, { runs: { cancel: () => new Promise(() => undefined) } });
  const done = run(it.context, "task.py", {});
  await it.task.running;
  it.context.signals.send("SIGINT");
  it.context.signals.send("SIGINT");
  expect(it.context.signals.deaths).toEqual(["SIGINT"]);
  it.task.end();
  await done;
});

test("SIGINT while the image is fetched gives up and exits with 130", async () => {
  let pulling: () => void = () => undefined;
  const pulled = new Promise<void>((resolve) => {
    pulling = resolve;
  });
  const start: Runs["start"] = (_request, options) =>
    new Promise((_, reject) => {
      options?.signal?.addEventListener("abort", () => reject(new AidoError("CANCELLED", "Cancelled")));
      pulling();
    });
  await using it = await setUp({}, { runs: { start } });
  const done = run(it.context, "task.py", {});
  await pulled;
  it.context.signals.send("SIGINT");
  expect(await done).toBe(130);
});

test("S0-88 a missing task file is an error before anything is started", async () => {
  await using it = await setUp();
  await expect(run(it.context, "none.py", {})).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(run(it.context, "none.py", { image: "x" })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  expect([...it.started, ...it.made]).toEqual([]);
});

test("S0-39 without --sandbox the newest is asked for; with it, that one", async () => {
  await using it = await setUp();
  it.task.end();
  await run(it.context, "task.py", {});
  await run(it.context, "task.py", { sandbox: "web" });
  expect(it.started.map(({ sandbox }) => sandbox)).toEqual([undefined, "web"]);
});

test("S0-80 S0-82 S0-83 nothing dangerous is asked for unless its flag is written", async () => {
  await using it = await setUp();
  it.task.end();
  await run(it.context, "task.py", {});
  await run(it.context, "task.py", {
    dangerousAllowHostNetwork: true,
    dangerousAllowPrivileged: true,
    autoDestroy: false,
  });
  const flags = it.started.map(({ hostNetwork, privileged, autoDestroy }) => [
    hostNetwork,
    privileged,
    autoDestroy,
  ]);
  expect(flags).toEqual([
    [undefined, undefined, undefined],
    [true, true, false],
  ]);
});

test("an image or limits make a sandbox for the task alone, and secrets stay out of its spec's copy", async () => {
  await using it = await setUp();
  it.task.end();
  const limits = { memory: "1g", pids: "20", disk: "2g" };
  await run(it.context, "task.py", { image: "my:image", ttl: "2m", ...limits, env: ["KEY=hunter2"] });
  expect(it.made[0]).toMatchObject({
    implicit: true,
    start: { task: { path: "task.py" } },
    spec: {
      runtime: "my:image",
      ttlMs: 120_000,
      limits: { memoryBytes: 1024 ** 3, pids: 20, diskBytes: 2 * 1024 ** 3 },
      env: { KEY: "hunter2" },
    },
  });
  expect(it.made[0]?.specText).not.toContain("hunter2");
  expect(it.started).toEqual([]);
});

test("--sandbox with another image is refused", async () => {
  await using it = await setUp();
  await expect(run(it.context, "task.py", { sandbox: "web", image: "x" })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
});
