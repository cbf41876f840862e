import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runs, StartRun, UpRequest } from "@aido/sdk";
import { AidoError, type RunRecord } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { asOrdinaryUser } from "../../test/processes/as-ordinary-user.ts";
import { implicitSpec } from "./implicit-spec.ts";
import { loadSpec, loadTemplate } from "./load-spec.ts";
import { parseSpec } from "./parse-spec.ts";
import { readTask } from "./read-task.ts";
import { startTask } from "./start-task.ts";
import { toUpRequest } from "./up-request.ts";

async function makeProject(files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), "aido-task-"));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return {
    root,
    async [Symbol.asyncDispose]() {
      await rm(root, { recursive: true });
    },
  };
}

/** Runs that only remember what they were asked; sandboxes are those that `up` made with a spec. */
class RecordedRuns implements Pick<Runs, "up" | "start"> {
  readonly ups: UpRequest[] = [];
  readonly starts: StartRun[] = [];

  async up(request: UpRequest): Promise<RunRecord> {
    this.ups.push(request);
    return { id: `sandbox${this.ups.length}` } as RunRecord;
  }

  async start(request: StartRun): Promise<RunRecord> {
    this.starts.push(request);
    if (request.sandbox === undefined && !this.ups.some((up) => up.implicit !== true)) {
      throw new AidoError("CONTAINER_NOT_FOUND", "none yet");
    }
    return { id: request.sandbox ?? "newest" } as RunRecord;
  }
}

const SPEC = "name: mine\nruntime: python\nttl: 5m\n";

test("S0-40 S0-88 a task file that is missing, unreadable or no file is told before anything is asked of a sandbox", async () => {
  await using project = await makeProject({ "dir/a.py": "" });
  const runs = new RecordedRuns();
  const start = (task: string) => startTask(runs as unknown as Runs, { task, projectDir: project.root });
  await expect(start(join(project.root, "nope.py"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(start(join(project.root, "dir/a.py/b.py"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(start(join(project.root, "dir"))).rejects.toMatchObject({ code: "TASK_NOT_READABLE" });
  expect(runs.starts).toEqual([]);
  expect(runs.ups).toEqual([]);
});

test("S0-40 a task file that may not be read is refused", async () => {
  await using project = await makeProject({ "a.py": "" });
  await chmod(project.root, 0o755);
  await chmod(join(project.root, "a.py"), 0);
  using _ = asOrdinaryUser();
  await expect(readTask(join(project.root, "a.py"))).rejects.toMatchObject({ code: "TASK_NOT_READABLE" });
});

test("S0-39 the named sandbox is used, else the newest that `up` made", async () => {
  await using project = await makeProject({ "a.py": "", "sandbox.yaml": SPEC });
  const runs = new RecordedRuns();
  const task = join(project.root, "a.py");
  await startTask(runs as unknown as Runs, { task, sandbox: "abc", projectDir: project.root });
  expect(runs.starts).toMatchObject([{ sandbox: "abc", task: { path: "a.py" } }]);
  await runs.up(await toUpRequest(await loadSpec(join(project.root, "sandbox.yaml"))));
  await startTask(runs as unknown as Runs, { task, projectDir: project.root });
  expect(runs.starts.at(-1)?.sandbox).toBeUndefined();
  expect(runs.ups).toHaveLength(1);
});

test("S0-39 without a sandbox the project's spec file makes one", async () => {
  await using project = await makeProject({ "a.py": "", "sandbox.yaml": SPEC });
  const runs = new RecordedRuns();
  await startTask(runs as unknown as Runs, {
    task: join(project.root, "a.py"),
    projectDir: project.root,
    autoDestroy: false,
  });
  expect(runs.ups).toMatchObject([{ spec: { name: "mine" }, specText: SPEC, autoDestroy: false }]);
  expect(runs.starts.at(-1)).toMatchObject({ sandbox: "sandbox1", autoDestroy: false });
});

test("without a sandbox and a spec file one is made that fits the task and serves no other", async () => {
  await using project = await makeProject({ "a.py": "", "b.mjs": "" });
  const runs = new RecordedRuns();
  for (const name of ["a.py", "b.mjs"]) {
    await startTask(runs as unknown as Runs, { task: join(project.root, name), projectDir: project.root });
  }
  expect(runs.ups).toMatchObject([
    { spec: { runtime: "python" }, implicit: true, start: { task: { path: "a.py" } } },
    { spec: { runtime: "node" }, implicit: true, start: { task: { path: "b.mjs" } } },
  ]);
  // Asked for before one is made, and not again: what is made starts its task by itself.
  expect(runs.starts.map((start) => start.sandbox)).toEqual([undefined, undefined]);
});

test.each([
  ["a.py", "python"],
  ["a.JS", "node"],
  ["a.mjs", "node"],
  ["a.ts", "node"],
  ["a.sh", "bash"],
  ["Makefile", "bash"],
])("the task %s runs on %s, and the text of its spec says the same", async (task, runtime) => {
  const { spec, text } = implicitSpec(task);
  expect(spec.runtime).toBe(runtime);
  expect(await parseSpec(text)).toEqual(spec);
});

test("S0-92 the tasks of steps are sent along, each once, and must lie in the project", async () => {
  const steps =
    "steps:\n  - { name: a, task: s/one.sh }\n  - { name: b, task: s/one.sh }\n  - { name: c, task: two.py }\n";
  await using project = await makeProject({ "s/one.sh": "1", "two.py": "2", "sandbox.yaml": SPEC + steps });
  const request = await toUpRequest(await loadSpec(join(project.root, "sandbox.yaml")));
  expect(request.tasks?.map((task) => task.path)).toEqual(["s/one.sh", "two.py"]);
  await rm(join(project.root, "two.py"));
  await expect(toUpRequest(await loadSpec(join(project.root, "sandbox.yaml")))).rejects.toMatchObject({
    code: "TASK_NOT_FOUND",
    message: "There is no task file two.py",
  });
  await symlink("/etc/hostname", join(project.root, "two.py"));
  await expect(toUpRequest(await loadSpec(join(project.root, "sandbox.yaml")))).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
});

test("S0-32 a spec file that is not there is told with what to do", async () => {
  await using project = await makeProject({});
  await expect(loadSpec(join(project.root, "sandbox.yaml"))).rejects.toMatchObject({
    code: "INVALID_SPEC",
    hint: expect.stringContaining("--template"),
  });
  await expect(loadSpec(project.root)).rejects.toMatchObject({ code: "INVALID_SPEC" });
});

test.each(["python", "node", "bash"] as const)("S0-93 the template %s is a whole spec", async (name) => {
  const { spec, projectDir } = await loadTemplate(name, "/project");
  expect(spec).toMatchObject({ name, runtime: name, network: "none" });
  expect(projectDir).toBe("/project");
});

test("the examples are specs that work", async () => {
  const examples = new URL("../../../../examples/", import.meta.url).pathname;
  const single = await toUpRequest(await loadSpec(join(examples, "sandbox.yaml")));
  expect(single.inputs.map((file) => file.path)).toEqual(["data/orders.csv"]);
  const pipeline = await toUpRequest(await loadSpec(join(examples, "pipeline/sandbox.yaml")));
  expect(pipeline.tasks?.map((task) => task.path)).toEqual(["check.sh", "totals.py", "report.py"]);
});
