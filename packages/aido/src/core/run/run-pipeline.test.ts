import { expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf, stepOf } from "../../../test/run/run-harness.ts";

const THREE = [stepOf("fetch", "s/fetch.sh"), stepOf("sum", "sum.py"), stepOf("report", "report.sh")];

test("S0-92 steps run in their order in one sandbox, each with its own logs and evidence", async () => {
  await using host = await makeFakeHost();
  const tasks = [
    fileOf("s/fetch.sh", "out fetching\nwrite /work/data 42\n"),
    fileOf("sum.py", "read /work/data\nerr hm\nwrite /outputs/sum x\n"),
    fileOf("report.sh", "where\n"),
  ];
  const { id, steps } = await host.up({ steps: THREE }, { tasks });
  expect(steps?.map((step) => step.status)).toEqual(["pending", "pending", "pending"]);
  const summary = await host.run({ sandbox: id });
  expect(summary).toMatchObject({
    status: "completed",
    exitCode: 0,
    task: "fetch, sum, report",
    outputFiles: ["sum"],
    steps: [
      { name: "fetch", task: "s/fetch.sh", status: "completed", exitCode: 0, durationMs: expect.any(Number) },
      { name: "sum", task: "sum.py", status: "completed", exitCode: 0 },
      { name: "report", task: "report.sh", status: "completed", exitCode: 0 },
    ],
  });
  expect(await host.read(id, "outputs/stdout.log")).toBe("fetching\n42\nbash /work\n");
  expect(await host.read(id, "outputs/stderr.log")).toBe("hm\n");
  expect(await host.read(id, "outputs/steps/2-sum.stdout.log")).toBe("42\n");
  expect(await host.read(id, "outputs/steps/2-sum.stderr.log")).toBe("hm\n");
  const told = (await host.events(id)).map((entry) =>
    `${entry.event} ${entry.detail?.["step"] ?? ""}`.trim(),
  );
  expect(told.filter((event) => event.startsWith("step.") || event.startsWith("run."))).toEqual([
    "run.starting",
    "step.starting fetch",
    "step.completed fetch",
    "step.starting sum",
    "step.completed sum",
    "step.starting report",
    "step.completed report",
    "run.completed",
  ]);
});

test("S0-92 the first step that fails ends the pipeline with its exit code; later ones are skipped", async () => {
  await using host = await makeFakeHost();
  const tasks = [
    fileOf("s/fetch.sh", "out one\n"),
    fileOf("sum.py", "exit 7\n"),
    fileOf("report.sh", "out no\n"),
  ];
  const { id } = await host.up({ steps: THREE }, { tasks });
  const summary = await host.run({ sandbox: id });
  expect(summary).toMatchObject({ status: "failed", exitCode: 7 });
  expect(summary.steps?.map((step) => step.status)).toEqual(["completed", "failed", "skipped"]);
  expect((await host.runs.get(id)).steps).toEqual(summary.steps);
  expect(await host.read(id, "outputs/stdout.log")).toBe("one\n");
});

test("S0-92 a step that takes longer than its timeout ends the pipeline as timeout", async () => {
  await using host = await makeFakeHost();
  const steps = [stepOf("slow", "slow.sh", { timeoutMs: 100 }), stepOf("after", "after.sh")];
  const tasks = [fileOf("slow.sh", "sleep 60\n"), fileOf("after.sh", "")];
  const { id } = await host.up({ steps }, { tasks });
  const summary = await host.run({ sandbox: id });
  expect(summary).toMatchObject({ status: "timeout", exitCode: 124 });
  expect(summary.steps?.map((step) => step.status)).toEqual(["timeout", "skipped"]);
});

test("S0-92 a step whose program is missing fails, and those after it are skipped", async () => {
  await using host = await makeFakeHost({ programs: ["bash"] });
  const tasks = [fileOf("s/fetch.sh", ""), fileOf("sum.py", ""), fileOf("report.sh", "")];
  const { id } = await host.up({ steps: THREE }, { tasks });
  const summary = await host.run({ sandbox: id });
  expect(summary).toMatchObject({ status: "failed", error: expect.stringContaining("python3") });
  expect(summary.steps?.map((step) => step.status)).toEqual(["completed", "failed", "skipped"]);
});

test("a step has variables of its own besides the spec's", async () => {
  await using host = await makeFakeHost();
  const steps = [stepOf("a", "a.sh", { env: { B: "2" } }), stepOf("b", "a.sh")];
  const { id } = await host.up({ steps, env: { A: "1" } }, { tasks: [fileOf("a.sh", "env A\nenv B\n")] });
  await host.run({ sandbox: id });
  expect(await host.read(id, "outputs/stdout.log")).toBe("1\n2\n1\n\n");
});

test("cancelling a pipeline ends its running step and starts no other", async () => {
  await using host = await makeFakeHost();
  const tasks = [fileOf("s/fetch.sh", "sleep 60\n"), fileOf("sum.py", ""), fileOf("report.sh", "")];
  const { id } = await host.up({ steps: THREE }, { tasks });
  await host.runs.start({ sandbox: id });
  await host.runs.cancel(id);
  const summary = await host.runs.wait(id);
  expect(summary.status).toBe("failed");
  expect(summary.steps?.map((step) => step.status)).toEqual(["failed", "skipped", "skipped"]);
});

test("a pipeline whose task was not sent is refused before a sandbox is made", async () => {
  await using host = await makeFakeHost();
  await expect(host.up({ steps: THREE }, { tasks: [fileOf("sum.py", "")] })).rejects.toMatchObject({
    code: "TASK_NOT_FOUND",
  });
  expect(await host.sandboxes.list()).toEqual([]);
});

test("a run without a task in a sandbox without steps is refused", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await expect(host.runs.start({ sandbox: id })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  expect(await host.runs.get(id)).toMatchObject({ status: "pending" });
});

test("a single task can be run in a sandbox that has steps", async () => {
  await using host = await makeFakeHost();
  const tasks = [fileOf("s/fetch.sh", ""), fileOf("sum.py", ""), fileOf("report.sh", "")];
  const { id } = await host.up({ steps: THREE }, { tasks });
  const summary = await host.run({ sandbox: id, task: fileOf("x.sh", "out x\n") });
  expect(summary).toMatchObject({ status: "completed", task: "x.sh" });
  expect(summary).not.toHaveProperty("steps");
});
