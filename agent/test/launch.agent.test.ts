import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { AGENT_BINARY, isAlive } from "./agent-process.ts";

const run = promisify(execFile);

class Scratch implements AsyncDisposable {
  readonly path: string;
  readonly #pids: number[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<Scratch> {
    return new Scratch(await mkdtemp(join(tmpdir(), "aido-launch-test-")));
  }

  async launch(...argv: string[]): Promise<number> {
    const pid = Number((await run(AGENT_BINARY, ["launch", ...argv])).stdout);
    this.#pids.push(pid);
    return pid;
  }

  async text(name: string): Promise<string> {
    return readFile(join(this.path, name), "utf8").catch(() => "");
  }

  async until(look: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + 20_000;
    while (!(await look())) {
      if (Date.now() > end) throw new Error("Not within 20 s");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.#pids) if (await isAlive(pid)) process.kill(pid, "SIGKILL");
    await rm(this.path, { recursive: true });
  }
}

test("a launched program outlives its starter in a session of its own, without a way back to it", async () => {
  await using scratch = await Scratch.make();
  const log = join(scratch.path, "log");
  const script = "ls /proc/self/fd | wc -l; cat; echo err >&2; exec sleep 1000";
  const pid = await scratch.launch(
    "--pidfile",
    join(scratch.path, "pid"),
    "--log",
    log,
    "--",
    "sh",
    "-c",
    script,
  );
  expect(Number(await scratch.text("pid"))).toBe(pid);
  await scratch.until(async () => (await scratch.text("log")).includes("err"));
  expect(await scratch.text("log")).toBe("4\nerr\n");
  expect((await stat(log)).mode & 0o777).toBe(0o600);
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  expect(fields[3]).not.toBe("0");
  expect(Number(fields[3])).not.toBe(process.pid);
  expect(await isAlive(pid)).toBe(true);
});

test("limits, user and cgroups hold for the program", async () => {
  await using scratch = await Scratch.make();
  const log = join(scratch.path, "log");
  const procs = join(scratch.path, "cgroup.procs");
  await writeFile(procs, "");
  const limits = ["--rlimit", "nofile=77", "--rlimit", "core=0", "--rlimit", "fsize=1048576"];
  const user = ["--uid", "1234", "--gid", "4321"];
  const script = "ulimit -n; ulimit -c; id -u; id -G; echo end";
  await scratch.launch("--cgroup-procs", procs, ...limits, ...user, "--log", log, "--", "sh", "-c", script);
  await scratch.until(async () => (await scratch.text("log")).includes("end"));
  expect(await scratch.text("log")).toBe("77\n0\n1234\n4321\nend\n");
  // 0 names the writer.
  expect(await scratch.text("cgroup.procs")).toBe("0\n");
});

test.each([
  ["a program that is not there", ["--", "/no/such/program"], "/no/such/program: No such file or directory"],
  [
    "a cgroup that is not there",
    ["--cgroup-procs", "/no/cgroup.procs", "--", "true"],
    "/no/cgroup.procs: No such",
  ],
  ["an unknown limit", ["--rlimit", "nonsense=1", "--", "true"], "bad option"],
  ["a limit that is no number", ["--rlimit", "nofile=-1", "--", "true"], "bad option"],
  ["a user without a group", ["--uid", "1", "--", "true"], "bad option"],
  ["nothing to run", ["--"], "bad option"],
  ["an unknown option", ["--nonsense", "1", "--", "true"], "bad option"],
])("%s is told, with exit code 1", async (_, argv, message) => {
  const attempt = run(AGENT_BINARY, ["launch", ...argv]);
  await expect(attempt).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining(message),
  });
});
