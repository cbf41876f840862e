import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { HOST_FRAME } from "../../packages/aido/src/core/supervisor/protocol.ts";
import { FrameBytes } from "./agent-frames.ts";
import { AgentProcess } from "./agent-process.ts";

test("the first hello claims the supervisor and the same token opens it again", async () => {
  await using agent = await AgentProcess.start();
  const first = await (await agent.connect()).hello(agent.token);
  const second = await (await agent.connect()).hello(agent.token);
  expect(first).toMatchObject({ version: 1, claimed: 0 });
  expect(second).toMatchObject({ version: 1, claimed: 1, boot: first.boot });
});

test("another token is denied and its connection is closed", async () => {
  await using agent = await AgentProcess.start();
  await (await agent.connect()).hello(agent.token);
  const stranger = await agent.connect();
  stranger.send(HOST_FRAME.hello, new FrameBytes().u16(1).raw(randomBytes(32)));
  expect(await stranger.wait("error")).toMatchObject({ code: "DENIED" });
  await stranger.waitClosed();
});

test("a token that differs in its last byte only is denied", async () => {
  await using agent = await AgentProcess.start();
  await (await agent.connect()).hello(agent.token);
  const near = Buffer.from(agent.token);
  near.writeUInt8((near.readUInt8(31) + 1) % 256, 31);
  const stranger = await agent.connect();
  stranger.send(HOST_FRAME.hello, new FrameBytes().u16(1).raw(near));
  expect(await stranger.wait("error")).toMatchObject({ code: "DENIED" });
});

test("nothing is accepted before hello", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  client.send(HOST_FRAME.ping, new FrameBytes().u64(1));
  expect(await client.wait("error")).toMatchObject({ code: "NOT_CLAIMED" });
  await client.waitClosed();
});

test("a hello of another version is refused and claims nothing", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  client.send(HOST_FRAME.hello, new FrameBytes().u16(2).raw(randomBytes(32)));
  expect(await client.wait("error")).toMatchObject({ code: "UNSUPPORTED" });
  await client.waitClosed();
  expect((await (await agent.connect()).hello(agent.token)).claimed).toBe(0);
});

test("a connection that says nothing is closed after ten seconds", async () => {
  await using agent = await AgentProcess.start();
  const silent = await agent.connect();
  const talking = await agent.connect();
  await talking.hello(agent.token);
  const started = Date.now();
  await silent.waitClosed();
  expect(Date.now() - started).toBeGreaterThan(9_000);
  expect(talking.closed).toBe(false);
});

test("seventeen greeted connections are one too many, and a silent one never keeps the host out", async () => {
  await using agent = await AgentProcess.start();
  const silent = await Promise.all(Array.from({ length: 16 }, () => agent.connect()));
  for (let i = 0; i < 16; i++) await (await agent.connect()).hello(agent.token);
  await Promise.all(silent.map((client) => client.waitClosed()));
  const seventeenth = await agent.connect();
  expect(await seventeenth.wait("error")).toMatchObject({ code: "LIMIT" });
  await seventeenth.waitClosed();
});

test("ping is answered with its cookie", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.send(HOST_FRAME.ping, new FrameBytes().u64(123_456_789));
  expect(await client.wait("pong")).toEqual({ type: "pong", cookie: 123_456_789 });
});

test("all that a host said before it died is done, also what was not read when it could no longer be answered", async () => {
  await using agent = await AgentProcess.start();
  const host = await agent.open();
  // There is always something to answer.
  for (let at = 0; at < 8; at++) host.exec(`loud-${at}`, ["yes"]);
  await host.wait("output");
  agent.kill("SIGSTOP");
  // More than is read at once; the kernel has it all before the host dies.
  const env = [`FILL=${"x".repeat(45_000)}`];
  const ids = ["a", "b", "c", "d", "e", "f"];
  for (const id of ids) host.exec(id, ["true"], "ab".includes(id) ? { env } : {});
  await host.flushed();
  host[Symbol.dispose]();
  agent.kill("SIGCONT");
  const next = await agent.open();
  for (const id of ids) {
    next.attach(id, 0, 0);
    expect((await next.end(id)).code).toBe(0);
  }
});
