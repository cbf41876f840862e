import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf, stepOf } from "../../../test/run/run-harness.ts";

describe("sandbox up", () => {
  test("S0-4 S0-23 S0-24 S0-25 S0-26 S0-34 the layout is made under the data directory", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ name: "replay" });
    const entries = await readdir(host.dataDir.sandbox(id));
    expect(entries).toEqual(
      expect.arrayContaining(["events.log", "inputs", "outputs", "run.json", "sandbox.yaml", "work"]),
    );
    expect(await host.read(id, "sandbox.yaml")).toBe("name: replay\n");
  });

  test("S0-30 S0-36 S0-63 S0-64 run.json begins as pending, with the resolved image", async () => {
    await using host = await makeFakeHost();
    const record = await host.up({ name: "replay", runtime: "python" });
    expect(record.id).toMatch(/^[0-9a-z]{8}$/);
    expect(JSON.parse(await host.read(record.id, "run.json"))).toEqual({
      id: record.id,
      sandbox: "replay",
      status: "pending",
      task: "",
      startedAt: null,
      completedAt: null,
      duration: null,
      exitCode: null,
      container: { id: null, image: "python:3.12-slim" },
      autoDestroy: true,
    });
  });

  test.each([
    ["python", "python:3.12-slim"],
    ["node", "node:20-slim"],
    ["bash", "ubuntu:22.04"],
    ["ghcr.io/team/tool:1", "ghcr.io/team/tool:1"],
  ])("S0-19 S0-20 S0-21 S0-22 the runtime %s means the image %s", async (runtime, image) => {
    await using host = await makeFakeHost();
    expect((await host.up({ runtime })).container.image).toBe(image);
  });

  test("S0-35 inputs are copied with their relative paths", async () => {
    await using host = await makeFakeHost();
    const inputs = [fileOf("a.csv", "1"), fileOf("deep/er/b.csv", "2")];
    const { id } = await host.up({}, { inputs });
    expect(await host.read(id, "inputs/a.csv")).toBe("1");
    expect(await host.read(id, "inputs/deep/er/b.csv")).toBe("2");
  });

  test.each(["../x", "/etc/x", "a/../../x", "a//b", ".", ""])(
    "S0-81 an input whose path is %j is refused and nothing stays",
    async (path) => {
      await using host = await makeFakeHost();
      await expect(host.up({}, { inputs: [fileOf(path, "x")] })).rejects.toMatchObject({
        code: "INVALID_PATH",
      });
      expect(await host.sandboxes.list()).toEqual([]);
      expect(await readdir(host.dataDir.sandboxes)).toEqual([]);
    },
  );

  test("S0-37 S0-86 the image is fetched by `up`; when that fails nothing stays but the evidence", async () => {
    await using host = await makeFakeHost({ images: ["ubuntu:22.04"] });
    await host.up();
    await expect(host.up({ runtime: "python" })).rejects.toMatchObject({ code: "IMAGE_NOT_FOUND" });
    expect(await host.sandboxes.list()).toHaveLength(1);
  });

  test("S0-41 nothing runs before a task does", async () => {
    await using host = await makeFakeHost();
    await host.up();
    expect(await host.driver.list()).toEqual([]);
  });

  test("a task that is started at once runs in the new sandbox, with all its files", async () => {
    await using host = await makeFakeHost();
    const start = { task: fileOf("task.sh", "out x\nsleep 30\n") };
    const { id, ...record } = await host.up({}, { start, inputs: [fileOf("in.txt", "in")] });
    const [container] = await host.driver.list();
    expect(container).toMatchObject({ sandboxId: id, state: "running" });
    expect(record).toMatchObject({
      status: "running",
      task: "task.sh",
      container: { id: container?.containerId },
    });
    expect(await host.read(id, "inputs/in.txt")).toBe("in");
    await host.runs.cancel(id);
    expect(await host.runs.wait(id)).toMatchObject({ status: "failed", task: "task.sh" });
    expect(await host.read(id, "outputs/stdout.log")).toBe("x\n");
    expect(await host.driver.list()).toEqual([]);
  });

  test("steps are started at once, too", async () => {
    await using host = await makeFakeHost();
    const steps = [stepOf("one", "one.sh"), stepOf("two", "two.sh")];
    const tasks = [fileOf("one.sh", "out 1\n"), fileOf("two.sh", "out 2\n")];
    const { id } = await host.up({ steps }, { start: {}, tasks });
    expect(await host.runs.wait(id)).toMatchObject({ status: "completed", task: "one, two" });
    expect(await host.read(id, "outputs/stdout.log")).toBe("1\n2\n");
  });

  test.each([
    ["its container cannot be started", { images: [] }, fileOf("task.sh", ""), "IMAGE_NOT_FOUND"],
    ["its task is nowhere", {}, undefined, "TASK_NOT_FOUND"],
    ["its task has a bad name", {}, fileOf("a/task.sh", ""), "INVALID_PATH"],
  ])("a task that cannot be started at once leaves no sandbox: %s", async (_, options, task, code) => {
    await using host = await makeFakeHost(options);
    await expect(host.up({}, { start: { task } })).rejects.toMatchObject({ code });
    expect(await host.sandboxes.list()).toEqual([]);
    expect(await host.driver.list()).toEqual([]);
  });
});

describe("run", () => {
  test("S0-47 S0-48 S0-49 S0-50 S0-51 S0-73 output, exit code, files and times are written down", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ name: "replay", runtime: "python" });
    const script = "out hello\nerr careful\nwrite /outputs/report.md done\nexit 3\n";
    const summary = await host.run({ sandbox: id, task: fileOf("analyze.py", script) });
    expect(summary).toMatchObject({
      sandboxId: id,
      status: "failed",
      task: "analyze.py",
      exitCode: 3,
      stdout: "outputs/stdout.log",
      stderr: "outputs/stderr.log",
      outputFiles: ["report.md"],
      missingOutputs: [],
    });
    expect(await host.read(id, "outputs/stdout.log")).toBe("hello\n");
    expect(await host.read(id, "outputs/stderr.log")).toBe("careful\n");
    expect(await host.read(id, "outputs/report.md")).toBe("done\n");
    expect(JSON.parse(await host.read(id, "outputs/summary.json"))).toEqual(summary);
  });

  test("S0-65 S0-66 S0-67 S0-68 S0-69 S0-70 S0-71 S0-72 run.json has the result", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up();
    const started = await host.runs.start({ sandbox: id, task: fileOf("task.sh", "sleep 0.05\n") });
    expect(started).toMatchObject({ status: "running", task: "task.sh", completedAt: null, exitCode: null });
    const summary = await host.runs.wait(id);
    const record = await host.runs.get(id);
    expect(record).toEqual({
      id,
      sandbox: "test",
      status: "completed",
      task: "task.sh",
      startedAt: summary.startedAt,
      completedAt: summary.completedAt,
      duration: summary.durationMs,
      exitCode: 0,
      container: { id: expect.stringContaining("fake-"), image: "ubuntu:22.04" },
      autoDestroy: true,
    });
    expect(record.startedAt).toBe(new Date(record.startedAt ?? "").toISOString());
    expect(record.duration).toBeGreaterThanOrEqual(50);
    expect(JSON.parse(await host.read(id, "run.json"))).toEqual(record);
  });

  test("S0-31 S0-52 events.log tells the run from its making to its end", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up();
    await host.run({ sandbox: id, task: fileOf("task.sh", "out x\n") });
    const entries = await host.events(id);
    const told = entries.map((entry) => entry.event);
    const expected = [
      "sandbox.created",
      "run.starting",
      "container.created",
      "outputs.captured",
      "run.completed",
    ];
    expect(told.filter((event) => expected.includes(event))).toEqual(expected);
    const lines = (await host.read(id, "events.log")).trimEnd().split("\n");
    for (const line of lines)
      expect(JSON.parse(line)).toMatchObject({ timestamp: expect.any(String), event: expect.any(String) });
  });

  test("S0-42 S0-43 S0-44 S0-45 S0-79 the mounts are inputs and task read-only, work and outputs writable", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ name: "a" }, { inputs: [fileOf("in.txt", "data\n")], autoDestroy: false });
    const script = "read /inputs/in.txt\nwhere\nwrite /work/left.txt x\n";
    await host.run({ sandbox: id, task: fileOf("t.py", script) });
    expect(await host.read(id, "outputs/stdout.log")).toBe("data\npython3 /work\n");
    expect(await host.read(id, "work/left.txt")).toBe("x\n");
    const mounts = host.driver.spec(id).mounts.map(({ target, readOnly }) => ({ target, readOnly }));
    expect(mounts).toEqual([
      { target: "/inputs", readOnly: true },
      { target: "/task", readOnly: true },
      { target: "/work", readOnly: false },
      { target: "/outputs", readOnly: false },
    ]);
    const sources = host.driver.spec(id).mounts.map((mount) => mount.source);
    const root = host.dataDir.sandbox(id);
    expect(sources).toEqual([
      join(root, "inputs"),
      join(root, "task"),
      join(root, "work"),
      join(root, "mounts/outputs"),
    ]);
  });

  test.each([
    ["python", "t.py", "python3"],
    ["node", "t.js", "node"],
    ["bash", "t.sh", "bash"],
    ["python", "task", "python3"],
    ["some/image:1", "t.py", "python3"],
    ["some/image:1", "t.mjs", "node"],
    ["some/image:1", "t.ts", "node"],
    ["some/image:1", "task", "bash"],
  ])("S0-47 with the runtime %s the task %s is run by %s", async (runtime, task, program) => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ runtime });
    await host.run({ sandbox: id, task: fileOf(task, "where\n") });
    expect(await host.read(id, "outputs/stdout.log")).toBe(`${program} /work\n`);
  });

  test("S0-46 limits come from the spec, else they are 1 cpu, 512 MiB and 100 processes", async () => {
    await using host = await makeFakeHost();
    const plain = await host.up({}, { autoDestroy: false });
    await host.run({ sandbox: plain.id, task: fileOf("t.sh", "") });
    expect(host.driver.spec(plain.id).limits).toMatchObject({
      cpus: 1,
      memoryBytes: 512 * 1024 ** 2,
      pids: 100,
    });
    const own = await host.up({ limits: { cpus: 0.5, pids: 20 } }, { autoDestroy: false });
    await host.run({ sandbox: own.id, task: fileOf("t.sh", "") });
    expect(host.driver.spec(own.id).limits).toMatchObject({
      cpus: 0.5,
      memoryBytes: 512 * 1024 ** 2,
      pids: 20,
    });
  });

  test("the spec's variables and network reach the sandbox", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ env: { GREETING: "hi" }, network: "bridge" }, { autoDestroy: false });
    await host.run({ sandbox: id, task: fileOf("t.sh", "env GREETING\n") });
    expect(await host.read(id, "outputs/stdout.log")).toBe("hi\n");
    expect(host.driver.spec(id).network).toBe("bridge");
  });

  test("S0-15 declared outputs that were not written are reported; patterns and directories count", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up({ outputs: ["report.md", "*.csv", "plots/", "gone.txt", "no/*.csv"] });
    const script = "write /outputs/report.md x\nwrite /outputs/a.csv x\nwrite /outputs/plots/p.svg x\n";
    const summary = await host.run({ sandbox: id, task: fileOf("t.sh", script) });
    expect(summary).toMatchObject({ status: "completed", missingOutputs: ["gone.txt", "no/*.csv"] });
  });

  test("S0-39 without a name the newest sandbox that `up` made is used", async () => {
    await using host = await makeFakeHost();
    await expect(host.runs.start({ task: fileOf("t.sh", "") })).rejects.toMatchObject({
      code: "CONTAINER_NOT_FOUND",
    });
    await host.up({ name: "first" });
    const second = await host.up({ name: "second" });
    await host.up({ name: "third" }, { implicit: true });
    const record = await host.runs.start({ task: fileOf("t.sh", "") });
    expect(record.id).toBe(second.id);
    await host.runs.wait(record.id);
    expect((await host.runs.get()).sandbox).toBe("third");
    expect((await host.runs.get("first")).sandbox).toBe("first");
  });

  test("a program that the runtime lacks is told by name, and the run is failed", async () => {
    await using host = await makeFakeHost({ programs: ["bash"] });
    const { id } = await host.up({ runtime: "tiny:1" });
    await expect(host.runs.start({ sandbox: id, task: fileOf("t.py", "") })).rejects.toMatchObject({
      code: "EXECUTION_FAILED",
      message: expect.stringContaining("t.py could not be started with python3"),
      hint: expect.stringContaining("runtime tiny:1"),
    });
    expect(await host.runs.get(id)).toMatchObject({
      status: "failed",
      error: expect.stringContaining("python3"),
    });
    expect((await host.events(id)).map((entry) => entry.event)).toEqual(
      expect.arrayContaining(["run.error", "run.failed"]),
    );
    expect(await host.driver.list()).toEqual([]);
  });

  test("a second task waits for nobody: it is refused while the first runs", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up();
    await host.runs.start({ sandbox: id, task: fileOf("a.sh", "sleep 30\n") });
    const other = host.another();
    for (const each of [host, other]) {
      await expect(each.runs.start({ sandbox: id, task: fileOf("b.sh", "") })).rejects.toMatchObject({
        code: "EXECUTION_CONFLICT",
      });
    }
    await host.runs.cancel(id);
    expect(await host.runs.wait(id)).toMatchObject({ status: "failed" });
  });

  test("a second run in the same sandbox finds its work and leaves its own outputs", async () => {
    await using host = await makeFakeHost();
    const { id } = await host.up();
    await host.run({ sandbox: id, task: fileOf("a.sh", "out one\nwrite /work/state 42\nexit 1\n") });
    const summary = await host.run({ sandbox: id, task: fileOf("b.sh", "read /work/state\n") });
    expect(summary).toMatchObject({ status: "completed", task: "b.sh" });
    expect(await host.read(id, "outputs/stdout.log")).toBe("42\n");
    expect(await host.runs.get(id)).not.toHaveProperty("error");
  });
});
