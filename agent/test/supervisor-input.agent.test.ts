import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXEC_FLAG, STDIN_WINDOW_BYTES } from "../../packages/aido/src/core/supervisor/protocol.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentProcess, IS_SANITIZED, statusKiB } from "./agent-process.ts";

/** What the supervisor makes of a full pipe. */
const PIPE_BYTES = 262_144;
/** What it reads into, and keeps. */
const READ_KIB = 256;

const lastAck = (client: AgentClient): number =>
  client.frames.reduce(
    (offset, frame) => (frame.type === "stdinAck" ? Math.max(offset, frame.offset) : offset),
    0,
  );

test("standard input streams through a window and closes", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const input = randomBytes(1_000_000);
  client.exec("e", ["cat"], { flags: EXEC_FLAG.stdin });
  for (let sent = 0; sent < input.length; ) {
    const room = await client.until(() => lastAck(client) + STDIN_WINDOW_BYTES - sent || undefined, "room");
    const bytes = input.subarray(sent, sent + room);
    client.stdin("e", sent, bytes);
    sent += bytes.length;
  }
  client.stdinClose("e", input.length);
  expect((await client.end("e")).stdout.equals(input)).toBe(true);
});

test("repeated and overlapping input is taken once", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["cat"], { flags: EXEC_FLAG.stdin });
  client.stdin("e", 0, Buffer.from("abc"));
  client.stdin("e", 0, Buffer.from("abc"));
  client.stdin("e", 1, Buffer.from("bcde"));
  client.stdinClose("e", 5);
  client.stdinClose("e", 5);
  expect((await client.end("e")).stdout.toString()).toBe("abcde");
});

test("a close that overtakes its last bytes waits for them", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["cat"], { flags: EXEC_FLAG.stdin });
  client.stdinClose("e", 3);
  client.stdin("e", 0, Buffer.from("abc"));
  expect((await client.end("e")).stdout.toString()).toBe("abc");
});

test("a command that does not read holds one window and no more", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["sleep", "1000"], { flags: EXEC_FLAG.stdin });
  await client.wait("started");
  client.stdin("e", 0, Buffer.alloc(STDIN_WINDOW_BYTES));
  // The pipe is made as wide as it gets and takes its part.
  await client.wait("stdinAck", (frame) => frame.offset === PIPE_BYTES);
  client.stdin("e", STDIN_WINDOW_BYTES, Buffer.alloc(PIPE_BYTES));
  await client.list();
  client.stdin("e", STDIN_WINDOW_BYTES + PIPE_BYTES, Buffer.from("x"));
  expect(await client.wait("error")).toMatchObject({ code: "PROTOCOL" });
});

test.skipIf(IS_SANITIZED)(
  "memory that much input took is given back, though more of it may come",
  async () => {
    await using agent = await AgentProcess.start();
    const client = await agent.open();
    const go = join(agent.directory, "go");
    const argv = ["sh", "-c", 'until test -e "$0"; do sleep 0.02; done; exec cat >/dev/null', go];
    client.exec("e", argv, { flags: EXEC_FLAG.stdin });
    await client.wait("started");
    const resident = async () => await statusKiB(await agent.pid(), "VmRSS");
    const before = await resident();
    client.stdin("e", 0, Buffer.alloc(STDIN_WINDOW_BYTES));
    await client.wait("stdinAck", (frame) => frame.offset === PIPE_BYTES);
    expect(await resident()).toBeGreaterThan(before + READ_KIB + 128);
    await writeFile(go, "");
    await client.wait("stdinAck", (frame) => frame.offset === STDIN_WINDOW_BYTES);
    await agent.poll(async () => (await resident()) < before + READ_KIB + 64, "the memory to be given back");
    client.stdin("e", STDIN_WINDOW_BYTES, Buffer.from("more"));
    await client.wait("stdinAck", (frame) => frame.offset === STDIN_WINDOW_BYTES + 4);
  },
);

test("input that is handed on without a copy stays whole: in frames of any size, cut anywhere", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const input = randomBytes(3_000_000);
  client.exec("e", ["sh", "-c", "sleep 0.2; cat"], { flags: EXEC_FLAG.stdin });
  let size = 1;
  for (let sent = 0; sent < input.length; size = ((size * 7) % 200_003) + 1) {
    const room = await client.until(() => lastAck(client) + STDIN_WINDOW_BYTES - sent || undefined, "room");
    const bytes = input.subarray(sent, sent + Math.min(room, size));
    client.stdin("e", sent, bytes);
    sent += bytes.length;
  }
  client.stdinClose("e", input.length);
  expect((await client.end("e")).stdout.equals(input)).toBe(true);
});

test("a command that closes its input is told as closed, and later bytes are taken to nowhere", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["sh", "-c", "exec 0<&-; echo closed; sleep 1000"], { flags: EXEC_FLAG.stdin });
  await client.wait("stdinAck", (frame) => frame.closed === 1);
  client.stdin("e", 0, Buffer.from("lost"));
  expect(await client.wait("stdinAck", (frame) => frame.offset === 4)).toMatchObject({ closed: 1 });
});

test("input goes on where it was after a lost connection", async () => {
  await using agent = await AgentProcess.start();
  const first = await agent.open();
  first.exec("e", ["cat"], { flags: EXEC_FLAG.stdin });
  first.stdin("e", 0, Buffer.from("one "));
  await first.wait("output");
  first[Symbol.dispose]();
  const second = await agent.open();
  second.attach("e", 4, 0);
  expect(await second.wait("stdinAck")).toMatchObject({ offset: 4, closed: 0 });
  second.stdin("e", 4, Buffer.from("two"));
  second.stdinClose("e", 7);
  expect((await second.end("e")).stdout.toString()).toBe("two");
});

test("a terminal has the asked size, takes a new one and is the command's own", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script =
    "trap 'stty size; exit 5' WINCH; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : >/dev/tty && echo tty; while :; do sleep 0.05; done";
  client.exec("e", ["bash", "-c", script], { flags: EXEC_FLAG.pty | EXEC_FLAG.stdin, rows: 30, cols: 100 });
  await client.until(() => (client.output("e", 1).bytes.includes("tty") ? true : undefined), "the terminal");
  client.resize("e", 40, 120);
  expect(await client.wait("ok")).toMatchObject({ id: "e", request: 9 });
  const { stdout, stderr, code } = await client.end("e");
  expect(stdout.toString()).toBe("30 100\r\ntty\r\n40 120\r\n");
  expect(stderr.length).toBe(0);
  expect(code).toBe(5);
});

test("a terminal's user may open it by name", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const options = { flags: EXEC_FLAG.pty, cwd: "/", user: { uid: 1234, gid: 1234 } };
  const { stdout, code } = await client.run("e", ["sh", "-c", 'echo ok >"$(tty)"'], options);
  expect([stdout.toString(), code]).toEqual(["ok\r\n", 0]);
});

test("Ctrl-C reaches the terminal's foreground command, and closing input ends a reader", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const flags = EXEC_FLAG.pty | EXEC_FLAG.stdin;
  client.exec("c", ["sleep", "1000"], { flags });
  await client.wait("started");
  client.stdin("c", 0, Buffer.from([3]));
  expect(await client.end("c")).toMatchObject({ how: 2, code: 2 });
  client.exec("d", ["sh", "-c", "stty -echo; echo ready; cat"], { flags });
  await client.until(() => (client.output("d", 1).bytes.includes("ready") ? true : undefined), "the reader");
  client.stdin("d", 0, Buffer.from("line\n"));
  client.stdinClose("d", 5);
  const { stdout, code } = await client.end("d");
  expect([stdout.toString(), code]).toEqual(["ready\r\nline\r\n", 0]);
});

test("resizing what has no terminal is refused", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["sleep", "1000"]);
  client.resize("e", 1, 1);
  expect(await client.error("e")).toMatchObject({ code: "UNSUPPORTED" });
});
