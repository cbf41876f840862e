import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import {
  HOST_FRAME,
  MAX_FRAME_BYTES,
  STDIN_WINDOW_BYTES,
} from "../../packages/aido/src/core/supervisor/protocol.ts";
import { FrameBytes } from "./agent-frames.ts";
import { AgentProcess, IS_SANITIZED } from "./agent-process.ts";

function header(length: number, type: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32LE(length);
  bytes.writeUInt8(type, 4);
  return bytes;
}

const execFields = (): FrameBytes => new FrameBytes().str("x").u8(0).u32(0).u32(0).str("");
const GARBAGE: readonly (readonly [string, Buffer])[] = [
  ["an empty frame", Buffer.alloc(4)],
  ["a frame that is too long", header(MAX_FRAME_BYTES + 1, HOST_FRAME.exec)],
  ["the longest length there is", header(0xffff_ffff, HOST_FRAME.exec)],
  ["an unknown type", new FrameBytes().frame(0x7f)],
  ["a type of the other direction", new FrameBytes().u64(1).frame(0x82)],
  ["a type of zero", new FrameBytes().frame(0)],
  ["a body that is too short", new FrameBytes().u32(1).frame(HOST_FRAME.ping)],
  ["bytes left over", new FrameBytes().u64(1).u8(0).frame(HOST_FRAME.ping)],
  ["a second hello", new FrameBytes().u16(1).raw(Buffer.alloc(32)).frame(HOST_FRAME.hello)],
  ["an id with a slash", new FrameBytes().str("a/b").frame(HOST_FRAME.forget)],
  ["an empty id", new FrameBytes().str("").frame(HOST_FRAME.forget)],
  ["an id of 65 characters", new FrameBytes().str("a".repeat(65)).frame(HOST_FRAME.forget)],
  ["a text longer than its frame", new FrameBytes().u32(0xffff_fff0).frame(HOST_FRAME.forget)],
  ["a list whose count cannot fit", execFields().u32(0xffff_ffff).frame(HOST_FRAME.exec)],
  ["a list that ends early", execFields().u32(2).str("a").frame(HOST_FRAME.exec)],
  ["a NUL in a text", execFields().list(["a\0b"]).list([]).u16(0).u16(0).u64(0).u32(0).u64(0).frame(4)],
  ["an exec without argv", execFields().list([]).list([]).u16(0).u16(0).u64(0).u32(0).u64(0).frame(4)],
  ["an unknown stream", new FrameBytes().str("live").u8(3).u64(0).frame(HOST_FRAME.ack)],
  [
    "an acknowledgement of what was never sent",
    new FrameBytes().str("live").u8(1).u64(99).frame(HOST_FRAME.ack),
  ],
  ["an attach beyond the end", new FrameBytes().str("live").u64(99).u64(0).frame(HOST_FRAME.attach)],
  [
    "standard input with a gap",
    new FrameBytes().str("live").u64(5).raw(Buffer.from("x")).frame(HOST_FRAME.stdin),
  ],
  [
    "standard input at the end of all offsets",
    new FrameBytes().str("live").raw(Buffer.alloc(8, 0xff)).raw(Buffer.from("x")).frame(HOST_FRAME.stdin),
  ],
  [
    "more standard input than the window",
    new FrameBytes()
      .str("live")
      .u64(0)
      .raw(Buffer.alloc(STDIN_WINDOW_BYTES + 1))
      .frame(7),
  ],
  ["an unknown scope", new FrameBytes().str("live").u8(15).u8(2).u32(0).frame(HOST_FRAME.signal)],
];

test.each(GARBAGE)("%s ends that connection alone", async (_, bytes) => {
  await using agent = await AgentProcess.start();
  const bystander = await agent.open();
  bystander.exec("live", ["sleep", "1000"], { flags: 1 });
  await bystander.wait("started");
  const client = await agent.open();
  client.raw(bytes);
  expect(await client.wait("error")).toMatchObject({ code: "PROTOCOL" });
  await client.waitClosed();
  expect((await bystander.run("after", ["/bin/true"])).code).toBe(0);
});

test("a frame longer than a hello is refused before hello", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.connect();
  client.raw(header(1_000_000, HOST_FRAME.hello));
  expect(await client.wait("error")).toMatchObject({ code: "PROTOCOL" });
  await client.waitClosed();
});

test("frames that come byte by byte are understood", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const bytes = new FrameBytes().u64(77).frame(HOST_FRAME.ping);
  for (const byte of bytes) {
    client.raw(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await client.wait("pong")).toMatchObject({ cookie: 77 });
});

test("a hundred frames in one write are all answered, in order", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const cookies = Array.from({ length: 100 }, (_, i) => i);
  client.raw(Buffer.concat(cookies.map((cookie) => new FrameBytes().u64(cookie).frame(HOST_FRAME.ping))));
  await client.wait("pong", (frame) => frame.cookie === 99);
  expect(client.frames.flatMap((frame) => (frame.type === "pong" ? [frame.cookie] : []))).toEqual(cookies);
});

test("a frame cut off by the end of its connection harms nobody", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const cut = await agent.open();
  cut.raw(header(1000, HOST_FRAME.exec));
  cut[Symbol.dispose]();
  expect((await client.run("after", ["/bin/true"])).code).toBe(0);
});

test.skipIf(IS_SANITIZED)("long answers to many small questions take no memory either", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  for (let i = 0; i < 200; i++) client.exec(`exec-with-a-long-name-${"x".repeat(30)}-${i}`, ["/bin/true"]);
  await client.until(
    () => (client.frames.filter((f) => f.type === "end").length === 200 ? true : undefined),
    "ends",
  );
  const deaf = await agent.open();
  deaf.pause();
  deaf.raw(Buffer.concat(Array.from({ length: 5000 }, () => new FrameBytes().frame(HOST_FRAME.list))));
  expect((await client.run("beside", ["/bin/true"])).code).toBe(0);
  const status = await readFile(`/proc/${await agent.pid()}/status`, "utf8");
  expect(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1])).toBeLessThan(2048);
  deaf.resume();
  await deaf.until(() => (deaf.frames.length > 5000 ? true : undefined), "every answer");
});

test("a peer that asks without reading the answers waits, and takes no memory", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const deaf = await agent.open();
  deaf.pause();
  const pings = Buffer.concat(
    Array.from({ length: 50_000 }, () => new FrameBytes().u64(1).frame(HOST_FRAME.ping)),
  );
  for (let i = 0; i < 10; i++) deaf.raw(pings);
  expect((await client.run("beside", ["/bin/true"])).code).toBe(0);
  deaf.resume();
  await deaf.until(() => (deaf.frames.length > 500_000 ? true : undefined), "every answer");
});
