import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { HOST_FRAME } from "../../packages/aido/src/core/supervisor/protocol.ts";
import { AgentClient } from "./agent-client.ts";
import { FrameBytes } from "./agent-frames.ts";
import { AGENT_BINARY, AgentProcess } from "./agent-process.ts";

const exitOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once("exit", resolve));

/** The supervisor's protocol over `aido-agent connect`, seen through a socket so that the same client speaks it. */
async function throughConnect(agent: AgentProcess): Promise<{ client: AgentClient; child: ChildProcess }> {
  const path = join(agent.directory, "through.sock");
  const child = spawn(AGENT_BINARY, ["connect", "--socket", agent.socket], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const server = createServer((socket: Socket) => {
    socket.pipe(child.stdin as NodeJS.WritableStream);
    (child.stdout as NodeJS.ReadableStream).pipe(socket);
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { client: await AgentClient.open(path), child };
}

test("connect carries the protocol both ways, a long output too, and ends with its input", async () => {
  await using agent = await AgentProcess.start();
  const { client, child } = await throughConnect(agent);
  const exit = exitOf(child);
  await client.hello(agent.token);
  await client.configure({ workdir: agent.directory });
  const { stdout } = await client.run("e", ["head", "-c", "20000000", "/dev/zero"]);
  expect(stdout.length).toBe(20_000_000);
  client[Symbol.dispose]();
  child.stdin?.end();
  expect(await exit).toBe(0);
});

test("connect ends when the supervisor closes, after passing on what it said last", async () => {
  await using agent = await AgentProcess.start();
  const { client, child } = await throughConnect(agent);
  const exit = exitOf(child);
  client.send(HOST_FRAME.ping, new FrameBytes().u64(1));
  expect(await client.wait("error")).toMatchObject({ code: "NOT_CLAIMED" });
  expect(await exit).toBe(0);
});

test("connect without a socket to go to says so", async () => {
  const attempt = promisify(execFile)(AGENT_BINARY, ["connect", "--socket", "/no/such.sock"]);
  await expect(attempt).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("/no/such.sock: No such"),
  });
});
