import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { listJobs, runJob } from "./job.ts";
import { metrics } from "./metrics.ts";

function bed() {
  const asked: unknown[] = [];
  const run = async (job: unknown, request: unknown) => {
    asked.push([job, request]);
    return { exitCode: 0, stdout: "\u001b[31mred", stderr: "" };
  };
  const list = async () => [{ id: 10 as const, name: "EXEC" as const, summary: "Run", request: {} }];
  const backend = fakeBackend({ jobs: { run: run as never, list } });
  return { asked, context: fakeContext({ backend }), backend };
}

test("fields are given as name=value, again for a list and with a dot within another", async () => {
  const { asked, context } = bed();
  const fields = [
    "count=2",
    "template_request.image=x",
    "template_request.name=a=b",
    "operators=1",
    "operators=2",
  ];
  expect(await runJob(context, "batch-create", fields, {})).toBe(0);
  expect(asked).toEqual([
    ["BATCH_CREATE", { count: "2", template_request: { image: "x", name: "a=b" }, operators: ["1", "2"] }],
  ]);
});

test("the result is printed as JSON that no terminal acts on", async () => {
  const { context } = bed();
  await runJob(context, "10", ["command=ls"], {});
  expect(context.stdout.text).not.toContain("\u001b");
  expect(JSON.parse(context.stdout.text)).toMatchObject({ exitCode: 0 });
});

test("a request comes from JSON or from a file, and fields go over it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "aido-job-"));
  try {
    const { asked, context } = bed();
    await runJob(context, "EXEC", ["command=b"], { jsonArgs: '{"command":"a","cwd":"/"}' });
    const file = join(directory, "request.json");
    writeFileSync(file, '{"command":"c"}');
    await runJob(context, "EXEC", [], { file });
    expect(asked).toEqual([
      ["EXEC", { command: "b", cwd: "/" }],
      ["EXEC", { command: "c" }],
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.each([
  ["a job that is none", "NOTHING", [], {}],
  ["a field without a value", "EXEC", ["command"], {}],
  ["JSON that is none", "EXEC", [], { jsonArgs: "[1]" }],
  ["a file that is not there", "EXEC", [], { file: "/nowhere/at/all" }],
  ["two sources", "EXEC", [], { jsonArgs: "{}", file: "x" }],
])("%s is refused before anything is opened", async (_, job, fields, options) => {
  const { asked, context } = bed();
  await expect(runJob(context, job, fields, options)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  expect(asked).toEqual([]);
});

test("jobs are listed with their numbers", async () => {
  const { context } = bed();
  expect(await listJobs(context)).toBe(0);
  expect(context.stdout.text).toContain("10  EXEC");
});

test("S2-78 numbers are shown by name", async () => {
  const backend = fakeBackend({ metrics: { total_jobs: 12, active_sandboxes: 3 } });
  const context = fakeContext({ backend });
  expect(await metrics(context)).toBe(0);
  expect(context.stdout.text).toMatch(/^total_jobs +12$/m);
});
