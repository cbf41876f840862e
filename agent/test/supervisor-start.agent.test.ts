import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { AGENT_BINARY, AgentProcess } from "./agent-process.ts";

const run = promisify(execFile);

async function failure(...argv: string[]): Promise<{ code: number; stderr: string }> {
  try {
    await run(AGENT_BINARY, argv);
  } catch (error) {
    return error as { code: number; stderr: string };
  }
  throw new Error(`${argv.join(" ")} did not fail`);
}

test("it tells its version and protocol", async () => {
  expect((await run(AGENT_BINARY, ["--version"])).stdout).toMatch(/^aido-agent \d+\.\d+\.\d+ protocol 1\n$/);
});

test("a supervisor that cannot start says why and exits with 125", async () => {
  expect(await failure("supervise", "--socket", "/no/such/place/agent.sock")).toMatchObject({
    code: 125,
    stderr: "aido-agent: /no/such/place/agent.sock: No such file or directory\n",
  });
  expect(await failure("supervise")).toMatchObject({ code: 125 });
  expect(await failure("supervise", "--unknown", "x")).toMatchObject({ code: 125 });
  expect(await failure()).toMatchObject({ code: 125 });
});

test("the socket is its owner's alone, works in a deep directory and replaces one that was left behind", async () => {
  await using agent = await AgentProcess.start();
  expect((await lstat(agent.socket)).mode & 0o777).toBe(0o600);
  const deep = join(agent.directory, "d".repeat(120));
  await mkdir(deep);
  const socket = join(deep, "agent.sock");
  for (let i = 0; i < 2; i++) {
    const before = i === 0 ? undefined : (await lstat(socket)).ino;
    const child = spawn(AGENT_BINARY, ["supervise", "--socket", socket], { stdio: "ignore" });
    try {
      const fresh = async (): Promise<boolean> => existsSync(socket) && (await lstat(socket)).ino !== before;
      await agent.poll(fresh, "the deep socket");
    } finally {
      const exit = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exit;
    }
  }
});

test("a command heeds every signal, whatever the supervisor was started to ignore", async () => {
  await using agent = await AgentProcess.start({ ignoring: ["HUP", "INT", "PIPE", "USR1"] });
  const client = await agent.open();
  expect(await client.run("hangup", ["sh", "-c", "kill -HUP $$"])).toMatchObject({ how: 2, code: 1 });
  expect(await client.run("pipe", ["sh", "-c", "kill -PIPE $$"])).toMatchObject({ how: 2, code: 13 });
  expect(await client.run("none", ["grep", "-q", "^SigIgn:.*[1-9a-f]", "/proc/self/status"])).toMatchObject({
    how: 1,
    code: 1,
  });
});

test("out of memory is told apart from other kills by the cgroup's counter", async () => {
  const directory = await mkdtemp(join(tmpdir(), "aido-agent-test-"));
  const events = join(directory, "memory.events");
  try {
    await writeFile(events, "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
    await using agent = await AgentProcess.start({ arguments: ["--cgroup", directory] });
    const client = await agent.open();
    const die = (kills: number) => ["sh", "-c", `echo "oom_kill ${kills}" >${events}; kill -9 $$`];
    expect(await client.run("killed", die(0))).toMatchObject({ how: 2, code: 9, flags: 0 });
    expect(await client.run("memory", die(1))).toMatchObject({ how: 2, code: 9, flags: 2 });
    expect(await client.run("later", die(1))).toMatchObject({ how: 2, code: 9, flags: 0 });
    const child = `echo "oom_kill 2" >${events}; exit 137`;
    expect(await client.run("child", ["sh", "-c", child])).toMatchObject({ how: 1, code: 137, flags: 2 });
    client.exec("ours", ["sh", "-c", `echo "oom_kill 3" >${events}; echo ready; sleep 1000`]);
    await client.wait("output", (frame) => frame.id === "ours");
    client.signal("ours", 9, 1);
    expect(await client.end("ours")).toMatchObject({ how: 2, code: 9, flags: 16 });
  } finally {
    await rm(directory, { recursive: true });
  }
});
