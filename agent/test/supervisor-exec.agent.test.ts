import { readFileSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AgentProcess } from "./agent-process.ts";

const { errno } = constants;

test("a command's output, exit code and totals arrive", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e1", ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]);
  expect(result).toMatchObject({ how: 1, code: 7, flags: 0 });
  expect(result.stdout.toString()).toBe("out\n");
  expect(result.stderr.toString()).toBe("err\n");
  expect(result.end).toMatchObject({ stdoutTotal: 4, stderrTotal: 4 });
});

test.each([0, 1, 42, 255])("exit code %i is told as it is", async (code) => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  expect(await client.run("e", ["sh", "-c", `exit ${code}`])).toMatchObject({ how: 1, code, flags: 0 });
});

test.each([1, 6, 9, 11, 15])("an end by signal %i is told as such", async (signal) => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  expect(await client.run("e", ["sh", "-c", `kill -${signal} $$`])).toMatchObject({
    how: 2,
    code: signal,
    flags: 0,
  });
});

test("cpu time and the largest memory of the command are told", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const { end } = await client.run("e", ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
  expect(end.cpuMs).toBeGreaterThan(20);
  expect(end.maxRssBytes).toBeGreaterThan(500_000);
});

test("repeating an id starts nothing and attaches again", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.autoAck = false;
  await client.run("once", ["sh", "-c", "echo x >>ran; echo hello"]);
  const again = await agent.open();
  const repeated = await again.run("once", ["sh", "-c", "echo x >>ran; echo hello"]);
  expect(await again.wait("started")).toMatchObject({ existing: 1 });
  expect(repeated.stdout.toString()).toBe("hello\n");
  expect(await readFile(join(agent.directory, "ran"), "utf8")).toBe("x\n");
});

test("a program that is not there fails to start and leaves its id free", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["no-such-program"]);
  expect(await client.error("e")).toMatchObject({ code: "START_FAILED", errno: errno.ENOENT });
  expect((await client.error("e")).message).toMatch(/^execve: /);
  expect((await client.list()).execs).toEqual([]);
  expect((await client.run("e", ["/bin/true"])).code).toBe(0);
});

test("a file that may not be run fails with its errno", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  await writeFile(join(agent.directory, "plain"), "text", { mode: 0o644 });
  client.exec("e", ["./plain"]);
  expect(await client.error("e")).toMatchObject({ code: "START_FAILED", errno: errno.EACCES });
});

test("a directory that is not there fails at chdir", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["/bin/true"], { cwd: "/no/such/place" });
  const error = await client.error("e");
  expect(error).toMatchObject({ code: "START_FAILED", errno: errno.ENOENT });
  expect(error.message).toMatch(/^chdir: /);
});

test("the command sees the environment it was given and no other", async () => {
  await using agent = await AgentProcess.start({ env: { AIDO_SECRET: "of the supervisor" } });
  const client = await agent.open();
  const { stdout } = await client.run("e", ["/usr/bin/env"], { env: ["A=1", "B=two words"] });
  expect(stdout.toString()).toBe("A=1\nB=two words\n");
});

test("the program is looked for in the PATH it was given, past what may not be run", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  await mkdir(join(agent.directory, "a"));
  await mkdir(join(agent.directory, "b"));
  await writeFile(join(agent.directory, "a/tool"), "not a program", { mode: 0o644 });
  await writeFile(join(agent.directory, "b/tool"), "#!/bin/sh\necho found\n", { mode: 0o755 });
  const PATH = `PATH=/nowhere:${agent.directory}/a:${agent.directory}/b`;
  expect((await client.run("e", ["tool"], { env: [PATH] })).stdout.toString()).toBe("found\n");
});

test("the command inherits three descriptors, default signals and a session of its own", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script =
    "ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; cut -d' ' -f5,6 /proc/$$/stat; echo $$";
  const { stdout } = await client.run("e", ["/bin/bash", "-c", script]);
  const [descriptors, blocked, ignored, umask, groups, pid] = stdout.toString().trim().split("\n");
  // 0, 1, 2 and the directory that ls itself reads.
  expect(Number(descriptors)).toBe(4);
  expect(blocked).toMatch(/:\s0+$/);
  expect(ignored).toMatch(/:\s0+$/);
  expect(umask).toBe("0022");
  expect(groups).toBe(`${pid} ${pid}`);
});

test("without standard input wanted the command reads its end at once", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  expect((await client.run("e", ["cat"])).stdout.length).toBe(0);
});

test("the command runs as its user with no capability and no way to gain one", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = "id -u; id -g; id -G; grep -E '^(Cap|NoNewPrivs)' /proc/self/status";
  const { stdout } = await client.run("e", ["sh", "-c", script], {
    cwd: "/",
    user: { uid: 1234, gid: 4321 },
  });
  const [uid, gid, groups, ...status] = stdout.toString().trim().split("\n");
  expect([uid, gid, groups]).toEqual(["1234", "4321", "4321"]);
  expect(status.filter((line) => line.startsWith("Cap")).every((line) => /\t0+$/.test(line))).toBe(true);
  expect(status).toContain("NoNewPrivs:\t1");
});

test("even a command of the superuser has no capability", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const { stdout } = await client.run("e", ["grep", "-E", "^Cap", "/proc/self/status"]);
  expect(
    stdout
      .toString()
      .trim()
      .split("\n")
      .every((line) => /\t0+$/.test(line)),
  ).toBe(true);
});

test("S0-82 in a privileged sandbox the superuser has what its container has, and nobody else anything", async () => {
  await using agent = await AgentProcess.start({ arguments: ["--privileged", "root"] });
  const client = await agent.open();
  const effective = async (id: string, user?: { uid: number; gid: number }) => {
    const argv = ["sed", "-n", "s/^\\(CapEff\\|CapBnd\\|NoNewPrivs\\):\\t//p", "/proc/self/status"];
    const { stdout } = await client.run(id, argv, user === undefined ? {} : { cwd: "/", user });
    return stdout.toString().trim().split("\n");
  };
  const own = readFileSync("/proc/self/status", "utf8");
  const line = (name: string) => new RegExp(`^${name}:\\t(.*)$`, "m").exec(own)?.[1];
  expect(await effective("root")).toEqual([line("CapEff"), line("CapBnd"), line("NoNewPrivs")]);
  expect(await effective("other", { uid: 1234, gid: 4321 })).toEqual(["0".repeat(16), "0".repeat(16), "1"]);
});

test("configure makes a missing directory with its parents and gives it to the user", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  await client.hello(agent.token);
  const workdir = join(agent.directory, "a/b/work");
  await client.configure({ uid: 1234, gid: 4321, workdir });
  expect(await stat(workdir)).toMatchObject({ uid: 1234, gid: 4321 });
  expect((await stat(join(agent.directory, "a"))).uid).toBe(0);
});

test("configure leaves a directory that is there to its owner, and tells why it cannot make one", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  await client.hello(agent.token);
  await client.configure({ uid: 1234, gid: 4321, workdir: agent.directory });
  expect((await stat(agent.directory)).uid).toBe(0);
  await writeFile(join(agent.directory, "file"), "");
  const attempt = client.configure({ workdir: join(agent.directory, "file/below") });
  expect(await client.error("")).toMatchObject({
    code: "START_FAILED",
    errno: errno.ENOTDIR,
    message: "workdir",
  });
  await attempt;
});

test("exec before configure is refused unless it names its user", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  await client.hello(agent.token);
  client.exec("e", ["/bin/true"]);
  expect(await client.error("e")).toMatchObject({ code: "UNSUPPORTED" });
  expect((await client.run("f", ["/bin/true"], { user: { uid: 0, gid: 0 } })).code).toBe(0);
});

test("what is remembered is listed until it is forgotten", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  await client.run("ended", ["echo", "hi"]);
  client.exec("running", ["sleep", "1000"]);
  await client.wait("started", (frame) => frame.id === "running");
  expect((await client.list()).execs).toEqual([
    { id: "ended", state: 2, stdoutBase: 3, stdoutTotal: 3, stderrBase: 0, stderrTotal: 0 },
    { id: "running", state: 1, stdoutBase: 0, stdoutTotal: 0, stderrBase: 0, stderrTotal: 0 },
  ]);
  client.forget("ended");
  await client.wait("forgotten", (frame) => frame.id === "ended");
  client.forget("running");
  expect(await client.error("running")).toMatchObject({ code: "UNSUPPORTED" });
  expect((await client.list()).execs.map((exec) => exec.id)).toEqual(["running"]);
  client.attach("ended");
  expect(await client.error("ended")).toMatchObject({ code: "NOT_FOUND" });
});

test("beyond 256 execs the oldest that is done makes room, and nothing else does", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  for (let i = 0; i < 256; i++) client.exec(`e${i}`, ["/bin/echo", "x"]);
  for (let i = 0; i < 256; i++) await client.end(`e${i}`);
  await client.run("next", ["/bin/true"]);
  const ids = (await client.list()).execs.map((exec) => exec.id);
  expect(ids).toHaveLength(256);
  expect(ids[0]).toBe("e1");
  expect(ids.at(-1)).toBe("next");
});

test("256 commands run at once, whatever the limit of open files, and one more is refused", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  for (let i = 0; i < 256; i++) client.exec(`e${i}`, ["cat"], { flags: 1 });
  await client.until(
    () => (client.frames.filter((f) => f.type === "started").length === 256 ? true : undefined),
    "starts",
  );
  client.exec("one-too-many", ["/bin/true"]);
  expect(await client.error("one-too-many")).toMatchObject({ code: "LIMIT" });
  for (let i = 0; i < 256; i++) client.stdinClose(`e${i}`, 0);
  for (let i = 0; i < 256; i++) expect((await client.end(`e${i}`)).code).toBe(0);
});

test("a command has the limit of open files that the supervisor was started with", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const limits = await readFile("/proc/self/limits", "utf8");
  const { stdout } = await client.run("e", ["cat", "/proc/self/limits"]);
  const line = /^Max open files.*$/m;
  expect(line.exec(stdout.toString())?.[0]).toBe(line.exec(limits)?.[0]);
});

test("256 execs whose output nobody has taken leave no room", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.autoAck = false;
  for (let i = 0; i < 256; i++) client.exec(`e${i}`, ["/bin/echo", "x"]);
  for (let i = 0; i < 256; i++) await client.end(`e${i}`);
  client.exec("one-too-many", ["/bin/true"]);
  expect(await client.error("one-too-many")).toMatchObject({ code: "LIMIT" });
});
