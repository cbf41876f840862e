import { existsSync } from "node:fs";
import { readlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { AidoProcess } from "./aido-process.ts";
import { Project } from "./project.ts";

const TASKS = {
  "hello.py": "import sys\nprint('hello from python')\nprint('to stderr', file=sys.stderr)\n",
  "hello.js": "console.log('hello from node'); console.error('to stderr');\n",
  "hello.sh": "echo hello from bash; echo to stderr >&2\n",
};

test.each([
  ["hello.py", "python"],
  ["hello.js", "node"],
  ["hello.sh", "bash"],
])("S0-41 S0-47 aido run %s runs it, output and errors apart", async (task, runtime) => {
  await using project = await Project.make("local", TASKS);
  const outcome = await project.aido(["run", task]);
  expect(outcome).toMatchObject({ code: 0, stdout: `hello from ${runtime}\n` });
  expect(outcome.stderr).toContain("to stderr");
});

test("S0-72 without images the record, the evidence and the user are told what ran in place of the one asked for", async () => {
  await using project = await Project.make("local", TASKS);
  const outcome = await project.ok(["run", "hello.py", "--no-auto-destroy"]);
  const [{ id } = expect.fail("no sandbox")] = await project.json<{ id: string }[]>(["ls"]);
  const stood = { image: "python:3.12-slim", programs: expect.stringMatching(/^host \/.*\/python3/) };
  expect(outcome.stderr).toMatch(/\(host \/.*\/python3.* in place of python:3\.12-slim\)\n/);
  expect(await project.readJson(".aido", "sandboxes", id, "run.json")).toMatchObject({ container: stood });
  expect(await project.json(["inspect", id])).toMatchObject(stood);
  const events = (await project.ok(["evidence", id, "--json"])).stdout.trim().split("\n");
  const created = events.map((line) => JSON.parse(line)).find(({ event }) => event === "container.created");
  expect(created).toMatchObject({ detail: stood });
});

test("S0-72 on docker a task runs in the image it names", async () => {
  await using project = await Project.make("docker", TASKS);
  const python = await project.aido(["run", "hello.py", "--image", "aido-test:python"]);
  expect(python).toMatchObject({ code: 0, stdout: "hello from python\n" });
  const shell = await project.aido(["run", "hello.sh", "--image", "aido-test:busybox"]);
  expect(shell).toMatchObject({ code: 125, stderr: expect.stringContaining("have bash") });
});

test("S0-32 S0-33 S0-34 S0-35 S0-36 S0-37 S0-38 S0-48 S0-49 S0-50 S0-51 S0-52 a spec's sandbox runs a task and leaves its evidence in the layout", async () => {
  await using project = await Project.make("local", {
    "sandbox.yaml":
      "name: demo\nruntime: bash\nttl: 5m\ninputs:\n  - data/*.txt\noutputs:\n  - report.txt\n  - missing.txt\n",
    "data/in.txt": "42\n",
    "task.sh":
      "cat /inputs/data/in.txt; pwd; echo warn >&2; cp /inputs/data/in.txt /outputs/report.txt; echo no > /inputs/x\nexit 3\n",
  });
  const up = await project.json<{ id: string; status: string }>(["sandbox", "up"]);
  expect(up).toMatchObject({ status: "pending", sandbox: "demo" });
  expect(up.id).toMatch(/^[0-9a-zA-Z]{8}$/);
  const home = [".aido", "sandboxes", up.id] as const;
  expect(await project.readJson(...home, "run.json")).toMatchObject({
    status: "pending",
    task: "",
    exitCode: null,
  });

  const outcome = await project.aido(["run", "task.sh"]);
  expect(outcome).toMatchObject({ code: 3, stdout: "42\n/work\n" });
  expect(outcome.stderr).toContain("missing.txt");
  expect(await project.read(...home, "outputs", "stdout.log")).toBe("42\n/work\n");
  expect(await project.read(...home, "outputs", "stderr.log")).toMatch(/^warn\n.*Read-only/s);
  expect(await project.read(...home, "outputs", "report.txt")).toBe("42\n");
  expect(await project.readJson(...home, "run.json")).toMatchObject({
    status: "failed",
    task: "task.sh",
    exitCode: 3,
  });
  expect(await project.readJson(...home, "outputs", "summary.json")).toMatchObject({
    sandboxId: up.id,
    exitCode: 3,
    outputFiles: ["report.txt"],
    missingOutputs: ["missing.txt"],
  });
  expect(await project.read(...home, "events.log")).toContain("run.failed");
});

test("--json prints the summary and nothing else on stdout", async () => {
  await using project = await Project.make("local", { "t.sh": "echo out; exit 4" });
  const outcome = await project.aido(["run", "t.sh", "--json"]);
  expect(outcome.code).toBe(4);
  expect(JSON.parse(outcome.stdout)).toMatchObject({ status: "failed", exitCode: 4, task: "t.sh" });
});

test.each([
  ["exit 0", 0],
  ["exit 3", 3],
  ["kill -9 $$", 137],
  ["kill -TERM $$", 143],
])("the exit code of %j is passed through as %i", async (script, code) => {
  await using project = await Project.make("local", { "t.sh": script });
  expect(await project.aido(["run", "t.sh"])).toMatchObject({ code });
});

test("S0-77 S0-78 S0-87 a task beyond its ttl is killed: exit 124, status timeout, evidence", async () => {
  await using project = await Project.make("local", { "t.sh": "echo started; sleep 60; echo never" });
  const outcome = await project.aido(["run", "t.sh", "--ttl", "2s"]);
  expect(outcome).toMatchObject({ code: 124, stdout: "started\n" });
  const [sandbox] = await project.json<{ id: string }[]>(["ls"]);
  const home = [".aido", "sandboxes", sandbox?.id ?? ""];
  expect(await project.readJson(...home, "outputs", "summary.json")).toMatchObject({ status: "timeout" });
  expect(await project.read(...home, "events.log")).toContain("run.timeout");
});

test("S0-40 S0-88 a missing task is 125 with a hint, and nothing was made", async () => {
  await using project = await Project.make("local");
  const outcome = await project.aido(["run", "none.py"]);
  expect(outcome).toMatchObject({ code: 125, stdout: "", stderr: expect.stringContaining("none.py") });
  expect(await project.json(["ls"])).toEqual([]);
});

test("S0-84 a broken spec is refused with line and column, all problems at once", async () => {
  await using project = await Project.make("local", {
    "sandbox.yaml": "name: demo\nruntime: python\nttl: five minutes\nextra: 1\n",
  });
  const outcome = await project.aido(["sandbox", "up"]);
  expect(outcome.code).toBe(2);
  expect(outcome.stderr).toMatch(/sandbox\.yaml.*3/s);
  expect(outcome.stderr).toMatch(/4/);
});

test("output that is not UTF-8 arrives byte for byte", async () => {
  await using project = await Project.make("local", { "t.sh": "printf 'a\\377\\000\\033[31mb'" });
  expect((await project.aido(["run", "t.sh"])).bytes).toEqual(
    Buffer.from([0x61, 0xff, 0x00, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0x62]),
  );
});

test("a reader that goes away ends the task quietly", async () => {
  await using project = await Project.make("local", { "t.sh": "while :; do echo line; done" });
  await using running = project.start(["run", "t.sh"]);
  await running.until("line");
  running.child.stdout.destroy();
  const outcome = await running.end();
  expect(outcome.signal).toBeNull();
  expect(outcome.stderr).not.toMatch(/EPIPE|Error/);
});

test("S0-53 S0-54 S0-55 S0-56 logs shows both streams, one of them, and follows a run to its end", async () => {
  await using project = await Project.make("local", {
    "t.sh": "echo one; echo err >&2; while [ ! -e /work/go ]; do sleep 0.1; done; echo two\n",
  });
  await project.write("sandbox.yaml", "name: demo\nruntime: bash\nttl: 2m\n");
  const { id } = await project.json<{ id: string }>(["sandbox", "up"]);
  await using running = project.start(["run", "t.sh"]);
  await running.until("one");
  await using following = project.start(["logs", "--follow"]);
  await following.until("one");
  expect(await project.aido(["logs"])).toMatchObject({ code: 0, stdout: "one\n" });
  await writeFile(project.path(".aido", "sandboxes", id, "work", "go"), "");
  expect(await following.end()).toMatchObject({ code: 0, stdout: "one\ntwo\n", stderr: "err\n" });
  expect(await running.end()).toMatchObject({ code: 0 });
  expect(await project.aido(["logs", id])).toMatchObject({ stdout: "one\ntwo\n", stderr: "err\n" });
  expect(await project.aido(["logs", "--follow", "--sandbox", id])).toMatchObject({ stdout: "one\ntwo\n" });
  expect(await project.aido(["logs", "--stderr"])).toMatchObject({ stdout: "", stderr: "err\n" });
  expect(await project.aido(["logs", "--separate"])).toMatchObject({ stdout: "one\ntwo\n" });
  const lines = (await project.ok(["logs", "--json"])).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(
    lines
      .filter(({ stream }) => stream === "stdout")
      .map(({ text }) => text)
      .join(""),
  ).toBe("one\ntwo\n");
});

test("S0-80 a task has no network unless the dangerous flag is written", async () => {
  await using project = await Project.make("local", {
    "t.sh": "readlink /proc/self/ns/net; grep -c : /proc/net/dev",
  });
  const host = await readlink("/proc/self/ns/net");
  const alone = await project.ok(["run", "t.sh"]);
  expect(alone.stdout).not.toContain(host);
  expect(alone.stdout).toMatch(/\n1\n$/);
  expect((await project.ok(["run", "t.sh", "--dangerous-allow-host-network"])).stdout).toContain(host);
  expect((await project.ok(["run", "t.sh"])).stdout).not.toContain(host);
});

test("S0-82 what a driver cannot give is refused, not left out", async () => {
  await using project = await Project.make("local", { "t.sh": "echo ran" });
  for (const option of [["--dangerous-allow-privileged"], ["--isolation", "kata"]]) {
    const outcome = await project.aido(["run", "t.sh", ...option]);
    expect(outcome).toMatchObject({ code: 125, stdout: "", stderr: expect.stringContaining("hint:") });
  }
});

test("S0-83 --no-auto-destroy keeps the sandbox running after its run", async () => {
  await using project = await Project.make("local", { "t.sh": "echo hi > /work/file" });
  await project.ok(["run", "t.sh", "--no-auto-destroy"]);
  const [sandbox] = await project.json<{ id: string; state: string }[]>(["ls"]);
  expect(sandbox?.state).toBe("running");
  expect((await project.ok(["exec", sandbox?.id ?? "", "cat", "/work/file"])).stdout).toBe("hi\n");
});

test("S0-57 S0-58 S0-59 S0-60 S0-61 destroy removes the files, keeps the evidence and says so", async () => {
  await using project = await Project.make("local", { "t.sh": "echo hi" });
  const { id } = await project.json<{ id: string }>(["sandbox", "up", "--template", "bash"]);
  await project.ok(["run", "t.sh"]);
  expect(await project.aido(["sandbox", "destroy", "--sandbox", id])).toMatchObject({
    code: 0,
    stdout: `Destroyed ${id}\n`,
  });
  expect(existsSync(project.path(".aido", "sandboxes", id))).toBe(false);
  expect(existsSync(project.path(".aido", "evidence", `${id}.log`))).toBe(true);
  await project.ok(["sandbox", "up", "--template", "bash"]);
  await project.ok(["sandbox", "up", "--template", "bash"]);
  expect((await project.ok(["sandbox", "destroy", "--all"])).stdout.match(/Destroyed/g)).toHaveLength(2);
  expect(await project.json(["sandbox", "list"])).toEqual([]);
});

test("without Docker and without a choice the machine's own namespaces do", async () => {
  await using project = await Project.make("local", TASKS);
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DOCKER_HOST: "unix:///nowhere/docker.sock" };
  await using running = new AidoProcess(["run", "hello.sh", "--no-auto-destroy"], {
    cwd: project.directory,
    env,
  });
  expect(await running.end()).toMatchObject({ code: 0, stdout: "hello from bash\n" });
  expect(await project.json(["ls"])).toMatchObject([{ driver: "local", state: "running" }]);
});

test("S0-85 when Docker does not run, the user is told to start it", async () => {
  await using project = await Project.make("docker", { "t.sh": "echo hi" });
  const env = { DOCKER_HOST: `unix://${project.path("no.sock")}` };
  const outcome = await project.aido(["run", "t.sh", "--image", "aido-test:python"], { env });
  expect(outcome).toMatchObject({ code: 125, stdout: "" });
  expect(outcome.stderr).toMatch(/Docker.*hint:.*[Ss]tart/s);
});
