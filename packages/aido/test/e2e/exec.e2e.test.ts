import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { Project } from "./project.ts";

test.each(["local", "docker"])(
  "exec on %s passes output, exit code, environment and directory through",
  async (driver) => {
    await using project = await Project.make(driver);
    const id = await project.create("--name", "web", "--env", "A=1");
    const script = "echo $A $B $(pwd); echo err >&2; exit 7";
    const outcome = await project.aido([
      "exec",
      "-e",
      "B=2",
      "--cwd",
      "/tmp",
      "web",
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(outcome).toMatchObject({ code: 7, stdout: "1 2 /tmp\n", stderr: "err\n" });
    expect(await project.aido(["exec", id.slice(0, 4), "echo", "-n", "--json"])).toMatchObject({
      code: 0,
      stdout: "--json",
    });
  },
);

test.each(["local", "docker"])(
  "exec -i on %s passes standard input through, byte for byte, and its end",
  async (driver) => {
    await using project = await Project.make(driver);
    const id = await project.create();
    const input = randomBytes(3_000_000);
    const outcome = await project.aido(["exec", "-i", id, "--", "cat"], { stdin: input });
    expect(outcome.code).toBe(0);
    expect(outcome.bytes.equals(input)).toBe(true);
    expect(await project.aido(["exec", "-i", id, "head", "-c", "3"], { stdin: input })).toMatchObject({
      code: 0,
    });
    expect(await project.aido(["exec", id, "cat"], { stdin: "ignored" })).toMatchObject({
      code: 0,
      stdout: "",
    });
  },
);

test("a command that ends while standard input stays open does not hang", async () => {
  await using project = await Project.make();
  const id = await project.create();
  await using running = project.start(["exec", "-i", id, "--", "sh", "-c", "exit 5"]);
  expect(await running.end()).toMatchObject({ code: 5 });
});

test.each([
  [["--timeout", "1s", "web", "sleep", "60"], 124],
  [["web", "sh", "-c", "kill -9 $$"], 137],
  [["web", "no-such-program"], 125],
  [["nowhere", "true"], 125],
  [["--cwd", "/no/such/dir", "web", "true"], 125],
])("exec %j exits with %i", async (argv, code) => {
  await using project = await Project.make();
  await project.create("--name", "web");
  expect(await project.aido(["exec", ...argv])).toMatchObject({ code, stdout: "" });
});

test("signals reach the command, which may answer them", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const script =
    "trap 'echo got INT' INT; trap 'echo got TERM; exit 9' TERM; echo ready; while :; do sleep 0.1; done";
  await using running = project.start(["exec", id, "--", "sh", "-c", script]);
  await running.until("ready");
  running.child.kill("SIGINT");
  await running.until("got INT");
  running.child.kill("SIGTERM");
  expect(await running.end()).toMatchObject({ code: 9, stdout: "ready\ngot INT\ngot TERM\n" });
});

test("--detach leaves the command running; ps, logs and kill reach it", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const exec = (
    await project.ok(["exec", "--detach", id, "--", "sh", "-c", "echo begun; sleep 60"])
  ).stdout.trim();
  expect((await project.ok(["ps", id])).stdout).toContain(exec);
  await using following = project.start(["logs", id, "--exec", exec, "--follow"]);
  await following.until("begun");
  await project.ok(["kill", id, exec, "--signal", "KILL"]);
  expect(await following.end()).toMatchObject({ code: 0, stdout: "begun\n" });
  const execs = await project.json<{ id: string; exitCode: number }[]>(["ps", id]);
  expect(execs.find((each) => each.id === exec)?.exitCode).toBe(137);
});

test("logs of a sandbox without a run shows its newest exec", async () => {
  await using project = await Project.make();
  const id = await project.create("--name", "web");
  expect(await project.aido(["logs", "web"])).toMatchObject({ code: 5, stdout: "" });
  await project.ok(["exec", id, "echo", "first"]);
  await project.ok(["exec", id, "echo", "second"]);
  expect(await project.aido(["logs", "web"])).toMatchObject({ code: 0, stdout: "second\n" });
});

test("history, diff and rollback follow the workspace from exec to exec", async () => {
  await using project = await Project.make();
  const id = await project.create("--history");
  await project.ok(["exec", id, "sh", "-c", "echo one > file"]);
  await project.ok(["exec", id, "sh", "-c", "echo two > file"]);
  const entries = await project.json<{ execId: string; files: string[] }[]>(["history", id]);
  expect(entries[0]?.files).toEqual(["file"]);
  expect((await project.ok(["diff", id])).stdout).toMatch(/-one\n\+two/);
  await project.ok(["rollback", id, entries[1]?.execId ?? ""]);
  expect((await project.ok(["exec", id, "cat", "file"])).stdout).toBe("one\n");
});

test("--json prints output and end as JSON lines", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const outcome = await project.aido(["exec", "--json", id, "--", "sh", "-c", "printf 'é\\377'; exit 2"]);
  expect(outcome.code).toBe(2);
  const lines = outcome.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.at(-1)).toMatchObject({ type: "end", status: "exited", exitCode: 2, sandboxId: id });
  expect(lines[0]).toMatchObject({ type: "output", stream: "stdout", offset: 0 });
});

test("much output passes through a slow reader with flat memory", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const megabytes = 256;
  await using running = project.start(["exec", id, "--", "head", "-c", String(megabytes << 20), "/dev/zero"]);
  let bytes = 0;
  let most = 0;
  running.child.stdout.removeAllListeners("data");
  for await (const chunk of running.child.stdout) {
    bytes += (chunk as Buffer).length;
    if (bytes % (16 << 20) < (chunk as Buffer).length)
      most = Math.max(most, await residentBytes(running.child.pid ?? 0));
  }
  expect(bytes).toBe(megabytes << 20);
  expect(most).toBeLessThan(250 << 20);
  expect(await running.end()).toMatchObject({ code: 0 });
});

async function residentBytes(pid: number): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}
