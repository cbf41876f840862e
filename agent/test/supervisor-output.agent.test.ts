import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { RING_BYTES, STREAM } from "../../packages/aido/src/core/supervisor/protocol.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentProcess, IS_SANITIZED, statusKiB } from "./agent-process.ts";

const numbers = (count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, i) => `${i + 1}\n`).join(""));
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

test("a long output comes whole and in order", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const { stdout, end } = await client.run("e", ["seq", "1000000"]);
  const expected = numbers(1_000_000);
  expect(end.stdoutTotal).toBe(expected.length);
  expect(sha256(stdout)).toBe(sha256(expected));
});

test("both streams flow at once and keep their own offsets", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const { stdout, stderr } = await client.run("e", ["sh", "-c", "seq 200000 & seq 300000 >&2; wait"]);
  expect(sha256(stdout)).toBe(sha256(numbers(200_000)));
  expect(sha256(stderr)).toBe(sha256(numbers(300_000)));
});

test("every byte arrives exactly once over connections that are lost again and again", async () => {
  await using agent = await AgentProcess.start();
  const expected = numbers(400_000);
  const parts: Buffer[] = [];
  let taken = 0;
  const first = await agent.open();
  first.exec("e", ["seq", "400000"]);
  let client: AgentClient = first;
  for (let round = 0; taken < expected.length; round++) {
    const before = taken;
    await client.until(() => {
      const held = client.output("e", STREAM.stdout).bytes.length;
      return held >= Math.min(100_000 * (round + 1), expected.length - before) ? true : undefined;
    }, "more output");
    client[Symbol.dispose]();
    const got = client.output("e", STREAM.stdout);
    expect(got.start).toBe(taken);
    parts.push(got.bytes);
    taken += got.bytes.length;
    client = await agent.open();
    client.attach("e", taken, 0);
  }
  expect((await client.end("e")).end.stdoutTotal).toBe(expected.length);
  expect(sha256(Buffer.concat(parts))).toBe(sha256(expected));
});

test("what was sent but not acknowledged is sent again from the asked offset", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.autoAck = false;
  await client.run("e", ["printf", "0123456789"]);
  client.ack("e", STREAM.stdout, 4);
  const again = await agent.open();
  again.autoAck = false;
  again.attach("e", 6, 0);
  expect((await again.end("e")).stdout.toString()).toBe("6789");
  again.attach("e", 3, 0);
  expect(await again.error("e")).toMatchObject({ code: "OFFSET_LOST" });
  const third = await agent.open();
  third.attach("e", 4, 0);
  expect((await third.end("e")).stdout.toString()).toBe("456789");
});

test("a later attach takes over and the former connection is told", async () => {
  await using agent = await AgentProcess.start();
  const first = await agent.open();
  first.exec("e", ["sh", "-c", "echo one; read line; echo two"], { flags: 1 });
  await first.wait("output");
  const second = await agent.open();
  second.attach("e", 4, 0);
  expect(await first.wait("detached")).toMatchObject({ id: "e" });
  second.stdin("e", 0, Buffer.from("go\n"));
  expect((await second.end("e")).stdout.toString()).toBe("two\n");
  expect(first.output("e", STREAM.stdout).bytes.toString()).toBe("one\n");
  expect(first.frames.some((frame) => frame.type === "end")).toBe(false);
});

test("what a former connection still acknowledges takes nothing from the one that has taken over", async () => {
  await using agent = await AgentProcess.start();
  const first = await agent.open();
  first.autoAck = false;
  first.exec("e", ["sh", "-c", "printf 0123456789; read line; echo end"], { flags: 1 });
  await first.wait("output", (frame) => frame.offset + frame.bytes.length === 10);
  const second = await agent.open();
  second.autoAck = false;
  second.attach("e", 2, 0);
  // It has not yet read that it is no longer the one.
  first.ack("e", STREAM.stdout, 8);
  await first.list();
  const third = await agent.open();
  third.autoAck = false;
  third.attach("e", 3, 0);
  third.stdin("e", 0, Buffer.from("go\n"));
  expect((await third.end("e")).stdout.toString()).toBe("3456789end\n");
});

test("the end is told again after each attach until it is forgotten", async () => {
  await using agent = await AgentProcess.start();
  await (await agent.open()).run("e", ["sh", "-c", "exit 3"]);
  for (let i = 0; i < 3; i++) {
    const client = await agent.open();
    client.attach("e");
    expect((await client.end("e")).code).toBe(3);
  }
});

test("a flood that nobody reads makes the command wait and memory stay small", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.autoAck = false;
  client.exec("flood", ["cat", "/dev/zero"]);
  const full = async (): Promise<boolean> => (await client.list()).execs[0]?.stdoutTotal === RING_BYTES;
  await agent.poll(full, "a full ring");
  const { pid } = await client.wait("started");
  const waiting = async (): Promise<boolean> =>
    /^State:\s+S/m.test(await readFile(`/proc/${pid}/status`, "utf8"));
  await agent.poll(waiting, "the command to wait");
  expect((await client.list()).execs[0]).toMatchObject({ stdoutBase: 0, stdoutTotal: RING_BYTES });
  if (!IS_SANITIZED) expect(await statusKiB(await agent.pid(), "VmRSS")).toBeLessThan(1024);
  client.ack("flood", STREAM.stdout, 1000);
  await client.wait("output", (frame) => frame.offset + frame.bytes.length === RING_BYTES + 1000);
});

test("a connection that stops reading does not slow another", async () => {
  await using agent = await AgentProcess.start();
  const stuck = await agent.open();
  stuck.exec("flood", ["cat", "/dev/zero"]);
  await stuck.wait("output");
  stuck.pause();
  const client = await agent.open();
  expect(sha256((await client.run("e", ["seq", "200000"])).stdout)).toBe(sha256(numbers(200_000)));
});

test("output beyond its limit ends the command, and what is below it is kept", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e", ["cat", "/dev/zero"], { outputLimit: 100_000 });
  expect(result).toMatchObject({ how: 2, code: 9, flags: 4 });
  expect(result.stdout.length).toBe(100_000);
});

test("output of exactly its limit is no offence", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e", ["head", "-c", "5000", "/dev/zero"], { outputLimit: 5000 });
  expect(result).toMatchObject({ how: 1, code: 0, flags: 0 });
  expect(result.stdout.length).toBe(5000);
});

test("output that waited in the pipe when the command ended is not cut off by a background child", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.autoAck = false;
  // 300,000 bytes: more than a ring, so that some still lie in the pipe when the shell ends.
  client.exec("e", ["sh", "-c", "sleep 1000 & head -c 300000 /dev/zero"]);
  const full = async (): Promise<boolean> => (await client.list()).execs[0]?.stdoutTotal === RING_BYTES;
  await agent.poll(full, "a full ring");
  const { pid } = await client.wait("started");
  const gone = async (): Promise<boolean> =>
    (await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "gone")) === "gone";
  await agent.poll(gone, "the shell to end");
  // One that is cut off later shows that the time for it has passed.
  expect(await client.run("clock", ["sh", "-c", "sleep 1000 &"])).toMatchObject({ code: 0, flags: 8 });
  expect((await client.list()).execs[0]?.state).toBe(1);
  client.ack("e", STREAM.stdout, RING_BYTES);
  const { end, stdout } = await client.end("e");
  expect(end).toMatchObject({ how: 1, code: 0, flags: 8, stdoutTotal: 300_000 });
  expect(stdout.length).toBe(300_000);
});
