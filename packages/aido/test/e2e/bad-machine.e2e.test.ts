import { execFile } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OwnEngine } from "../backends/own-engine.ts";
import { until } from "../contract/driver-backend.ts";
import { MAIN } from "./aido-process.ts";
import { Project } from "./project.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

/** A disk of its own for the data directory, small enough to fill. */
async function smallDisk(project: Project): Promise<AsyncDisposable & { args: readonly string[] }> {
  const disk = project.path("disk");
  await mkdir(disk);
  await run("mount", ["-t", "tmpfs", "-o", "size=6m", "tmpfs", disk]);
  const args = ["--data-dir", "disk/data"];
  return {
    args,
    [Symbol.asyncDispose]: async () => {
      await project.aido([...args, "rm", "--all"]);
      await run("umount", [disk]);
    },
  };
}

test.runIf(isRoot).each([
  ["local", "host"],
  ["docker", "aido-test:python"],
])("on %s a task that fills aido's own disk is ended, told, and can be destroyed", async (driver, image) => {
  await using project = await Project.make(driver, {
    "t.sh": "echo begun; head -c 40000000 /dev/zero; echo never >&2\n",
  });
  await using disk = await smallDisk(project);
  const outcome = await project.aido([...disk.args, "run", "--image", image, "t.sh"]);
  expect(outcome.code).toBe(125);
  expect(outcome.stdout.startsWith("begun\n")).toBe(true);
  expect(outcome.stderr).toMatch(/no space left/i);
  const [sandbox] = await project.json<{ state: string }[]>([...disk.args, "ls"]);
  expect(sandbox).toMatchObject({ state: "stopped" });
  await project.ok([...disk.args, "rm", "--all"]);
  expect(await project.json([...disk.args, "ls"])).toEqual([]);
  await project.ok([...disk.args, "evidence", "verify"]);
});

test.runIf(isRoot)(
  "on a disk that gets full files are whole or missing, and what is missing is told",
  async () => {
    const write = "head -c 3000100 /dev/zero > /outputs/big; echo small > /outputs/small";
    await using project = await Project.make("local", { "t.sh": write, "in.bin": "x".repeat(5_000_100) });
    await using disk = await smallDisk(project);
    const outcome = await project.ok([...disk.args, "run", "--image", "host", "t.sh"]);
    expect(outcome.stderr).toContain("1 output(s) were left out: big (no space left on the disk)");
    await project.ok([...disk.args, "outputs", "--to", "copies"]);
    expect(await readdir(project.path("copies"))).toEqual(["small"]);
    await project.ok([...disk.args, "rm", "--all"]);
    await project.write("sandbox.yaml", "name: x\nruntime: host\nttl: 1m\ninputs: [in.bin]\n");
    const refused = await project.aido([...disk.args, "sandbox", "up"]);
    expect(refused.stderr).toMatch(/No space left.*\nhint: /s);
    expect(await project.json([...disk.args, "ls"])).toEqual([]);
  },
);

test.runIf(isRoot)("on a disk that is full nothing is begun, and the error says so", async () => {
  await using project = await Project.make();
  await using disk = await smallDisk(project);
  await project.ok([...disk.args, "ls"]);
  await run("sh", ["-c", "head -c 8000000 /dev/zero > disk/fill || true"], { cwd: project.directory });
  await run("rm", [project.path("disk", "data", "aido.db-reserve")]);
  await run("sh", ["-c", "head -c 8000000 /dev/zero > disk/fill2 || true"], { cwd: project.directory });
  const outcome = await project.aido([...disk.args, "create", "--image", "host"]);
  expect(outcome.code).not.toBe(0);
  expect(outcome.stderr).toMatch(/No space left.*\nhint: /s);
  await run("rm", [project.path("disk", "fill"), project.path("disk", "fill2")]);
  expect(await project.json([...disk.args, "ls"])).toEqual([]);
});

test("a data directory that cannot be written is told as that, whatever is asked for", async () => {
  await using project = await Project.make("local", { "t.sh": "echo never\n" });
  await using place = await readOnlyPlace(project);
  for (const command of [["ls"], ["create", "--image", "host"], ["run", "--image", "host", "t.sh"]]) {
    const outcome = await project.aido(["--data-dir", place.path, ...command]);
    expect(outcome.code).toBe(command[0] === "run" ? 125 : 2);
    expect(outcome.stdout).toBe("");
    expect(outcome.stderr).toMatch(/Cannot write .*\nhint: Choose another directory with `--data-dir`/);
  }
});

test("a data directory where none can be made is told, and not tried for ever", async () => {
  await using project = await Project.make();
  for (const command of [["ls"], ["create", "--image", "host"]]) {
    const outcome = await project.aido(["--data-dir", "/proc/aido/data", ...command]);
    expect(outcome).toMatchObject({ code: 2, stderr: expect.stringMatching(/Cannot write .*\nhint: /) });
  }
});

test("doctor says that there is no place for temporary files", async () => {
  await using project = await Project.make();
  const outcome = await project.aido(["doctor"], { env: { TMPDIR: project.path("missing") } });
  expect(outcome).toMatchObject({ code: 1, stderr: "" });
  expect(outcome.stdout).toMatch(/FAIL {2}temporary .*missing/);
});

test("a sandbox has no more open files than the machine lets its user have", async () => {
  await using project = await Project.make("local", { "t.sh": "ulimit -n\n" });
  const command = 'ulimit -n 1000 && exec "$0" "$@"';
  const args = [MAIN, "--driver", "local", "run", "--image", "host", "t.sh"];
  const cwd = project.directory;
  const { stdout } = await run("sh", ["-c", command, process.execPath, ...args], { cwd });
  expect(stdout).toBe("1000\n");
});

/** Root writes wherever it can be written at all. */
async function readOnlyPlace(project: Project): Promise<AsyncDisposable & { path: string }> {
  const disk = project.path("read-only");
  await mkdir(disk, { mode: 0o500 });
  if (isRoot) await run("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", disk]);
  return {
    path: "read-only/data",
    [Symbol.asyncDispose]: async () => {
      if (isRoot) await run("umount", [disk]);
    },
  };
}

test("an engine that is killed during a run does not hold it up; when it is back, everything can be cleaned up", {
  timeout: 150_000,
}, async () => {
  await using engine = await OwnEngine.start();
  await engine.addImage("python");
  const env = { DOCKER_HOST: engine.host };
  await using project = await Project.make("docker", {
    "t.sh": "echo begun; until [ -e /work/go ]; do sleep 0.05; done; echo over\n",
  });
  await using running = project.start(["run", "--image", "aido-test:python", "t.sh"], { env });
  await running.until("begun");
  await engine.kill();
  const [id = expect.fail("no sandbox")] = await readdir(project.path(".aido", "sandboxes"));
  await project.write(`.aido/sandboxes/${id}/work/go`, "");
  const outcome = await running.end();
  // All that it said, and that aido could not see it to its end.
  expect(outcome).toMatchObject({ code: 125, signal: null, stdout: "begun\nover\n" });
  expect(outcome.stderr).toMatch(/Docker is not running.*\nhint: /s);
  await engine.restart();
  await project.ok(["ls"], { env });
  const record = await project.readJson(".aido", "sandboxes", id, "run.json");
  expect(record).toMatchObject({ status: "completed", exitCode: 0 });
  await project.ok(["rm", "--all"], { env });
  expect(await project.json(["ls"], { env })).toEqual([]);
  await project.ok(["evidence", "verify"], { env });
});

test.each(
  (["SIGINT", "SIGTERM", "SIGKILL"] as const).flatMap((signal) =>
    [0, 1, 2, 4].map((events) => [signal, events] as const),
  ),
)("%s after %i events of a run leaves what the next command shows and cleans up", async (signal, events) => {
  await using project = await Project.make("local", { "t.sh": "trap '' INT TERM; echo begun; sleep 60\n" });
  await using running = project.start(["run", "t.sh", "--ttl", "2m"]);
  const hasEnded = () => running.child.exitCode !== null || running.child.signalCode !== null;
  await until("so many events are told", async () => hasEnded() || (await countEvents(project)) >= events);
  running.child.kill(signal);
  const outcome = await running.end();
  if (signal === "SIGKILL") expect(outcome.signal).toBe("SIGKILL");
  else expect([outcome.code, outcome.signal]).not.toEqual([0, null]);
  expect(outcome.stderr).not.toMatch(/ {4}at /);
  await project.ok(["ls"]);
  await project.ok(["rm", "--all"]);
  expect(await project.json(["ls"])).toEqual([]);
  await project.ok(["evidence", "verify"]);
});

async function countEvents(project: Project): Promise<number> {
  const { stdout } = await run("sh", ["-c", "cat .aido/sandboxes/*/events.log 2>/dev/null | wc -l"], {
    cwd: project.directory,
  });
  return Number(stdout);
}
