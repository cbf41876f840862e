import { isAidoError } from "@aido/sdk/protocol";
import { describe, expect, it } from "vitest";
import { FrameReader } from "./frame-reader.ts";
import type { HostFrame, SupervisorFrame } from "./frames.ts";
import { decodeHostFrame, encodeHostFrame } from "./host-frames.ts";
import { HOST_FRAME, MAX_FRAME_BYTES, SUPERVISOR_FRAME } from "./protocol.ts";
import { decodeSupervisorFrame, encodeSupervisorFrame } from "./supervisor-frames.ts";

const HOST: readonly HostFrame[] = [
  { type: "hello", version: 1, token: Buffer.alloc(32, 7) },
  { type: "ping", cookie: 2 ** 40 + 5 },
  { type: "configure", deadlineMs: 60_000, uid: 1000, gid: 1001, workdir: "/wörk" },
  {
    type: "exec",
    id: "exec_1",
    flags: 13,
    uid: 1,
    gid: 2,
    cwd: "/tmp",
    argv: ["echo", "", "ünï"],
    env: ["A=1"],
    rows: 24,
    cols: 80,
    timeoutMs: 5_000_000_000,
    graceMs: 10,
    outputLimit: 0,
  },
  { type: "attach", id: "a", stdoutOffset: 2 ** 33, stderrOffset: 0 },
  { type: "ack", id: "a", stream: 2, offset: 7 },
  { type: "stdin", id: "a", offset: 3, data: Buffer.from("hello") },
  { type: "stdinClose", id: "a", offset: 8 },
  { type: "resize", id: "a", rows: 1, cols: 65_535 },
  { type: "signal", id: "a", signal: 15, scope: 1, graceMs: 2000 },
  { type: "forget", id: "a" },
  { type: "list" },
  { type: "shutdown", graceMs: 1 },
];

const SUPERVISOR: readonly SupervisorFrame[] = [
  { type: "welcome", version: 1, boot: 2n ** 64n - 1n, claimed: true },
  { type: "pong", cookie: 9 },
  { type: "configured" },
  { type: "started", id: "a", pid: 4_294_967_295, existing: false },
  { type: "output", id: "a", stream: 1, offset: 2 ** 40, data: Buffer.from([0, 255, 10]) },
  { type: "stdinAck", id: "a", offset: 5, closed: true },
  {
    type: "end",
    id: "a",
    how: 2,
    code: 9,
    flags: 16,
    stdoutTotal: 1,
    stderrTotal: 2,
    cpuMs: 3,
    maxRssBytes: 4,
  },
  { type: "error", id: "", code: "DENIED", errno: 13, message: "no" },
  {
    type: "listed",
    execs: [{ id: "a", ended: true, stdoutBase: 1, stdoutTotal: 2, stderrBase: 3, stderrTotal: 4 }],
  },
  { type: "detached", id: "a" },
  { type: "forgotten", id: "a" },
  { type: "ok", request: HOST_FRAME.signal, id: "a" },
];

function read(bytes: Buffer, step = bytes.length): [number, Buffer][] {
  const frames: [number, Buffer][] = [];
  const reader = new FrameReader((type, body) => frames.push([type, body]));
  for (let at = 0; at < bytes.length; at += step) reader.push(bytes.subarray(at, at + step));
  return frames;
}

const isUnknownProtocol = (error: unknown) =>
  isAidoError(error, "CONTAINER_LOST") && /unknown protocol/.test(error.message);

describe("frames", () => {
  it("come back as they were sent, whatever the chunks", () => {
    const host = Buffer.concat(HOST.map(encodeHostFrame));
    const supervisor = Buffer.concat(SUPERVISOR.map(encodeSupervisorFrame));
    for (const step of [1, 2, 3, 7, 64, 100_000]) {
      expect(read(host, step).map(([type, body]) => decodeHostFrame(type, body))).toEqual(HOST);
      expect(read(supervisor, step).map(([type, body]) => decodeSupervisorFrame(type, body))).toEqual(
        SUPERVISOR,
      );
    }
  });

  it("have the layout of the protocol page", () => {
    expect(encodeHostFrame({ type: "ping", cookie: 1 }).toString("hex")).toBe("09000000020100000000000000");
    expect(
      encodeHostFrame({ type: "stdin", id: "x", offset: 0, data: Buffer.from("y") }).toString("hex"),
    ).toBe("0f000000070100000078000000000000000079");
  });

  it("hand output on without copying when it lies in one chunk", () => {
    const chunk = encodeSupervisorFrame({
      type: "output",
      id: "a",
      stream: 1,
      offset: 0,
      data: Buffer.alloc(1000, 1),
    });
    const frame = decodeSupervisorFrame(...(read(chunk)[0] ?? [0, Buffer.alloc(0)]));
    if (frame.type !== "output") throw new Error("not an output frame");
    expect(frame.data.buffer).toBe(chunk.buffer);
  });

  it("are refused when cut short, overlong, unknown or with lying counts", () => {
    for (const frame of SUPERVISOR) {
      const bytes = encodeSupervisorFrame(frame);
      const type = bytes.readUInt8(4);
      const body = bytes.subarray(5);
      if (frame.type !== "output") {
        const longer = Buffer.concat([body, Buffer.alloc(1)]);
        expect(() => decodeSupervisorFrame(type, longer)).toThrow(/bytes left over|too short/);
      }
      if (body.length > 0 && frame.type !== "output") {
        const shorter = body.subarray(0, body.length - 1);
        expect(() => decodeSupervisorFrame(type, shorter)).toThrow(/too short|bytes left over/);
      }
    }
    const lies = [
      [0x42, Buffer.alloc(0)],
      [SUPERVISOR_FRAME.listed, Buffer.from([255, 255, 255, 255])],
      [SUPERVISOR_FRAME.detached, Buffer.from([255, 255, 255, 255, 97])],
      [SUPERVISOR_FRAME.detached, Buffer.from([0, 0, 0, 0])],
      [SUPERVISOR_FRAME.pong, Buffer.alloc(8, 255)],
      [SUPERVISOR_FRAME.output, Buffer.from([1, 0, 0, 0, 97, 3, 0, 0, 0, 0, 0, 0, 0, 0])],
    ] as const;
    for (const [type, body] of lies) {
      let thrown: unknown;
      try {
        decodeSupervisorFrame(type, body);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toSatisfy(isUnknownProtocol);
    }
  });

  it("of impossible length end the reading before anything is allocated", () => {
    for (const length of [0, MAX_FRAME_BYTES + 1, 4_294_967_295]) {
      const header = Buffer.alloc(4);
      header.writeUInt32LE(length);
      const reader = new FrameReader(() => undefined);
      expect(() => reader.push(header)).toThrow(/unknown protocol/);
      expect(() => reader.push(encodeSupervisorFrame({ type: "configured" }))).toThrow(/after a bad frame/);
    }
  });

  it("survive random bytes: each is a frame or a refusal, never a crash", () => {
    let state = 12_345;
    const next = () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return state;
    };
    for (let round = 0; round < 20_000; round += 1) {
      const body = Buffer.from(Array.from({ length: next() % 40 }, () => (next() >> 8) & 255));
      const type = 0x80 + (round % 16);
      try {
        decodeSupervisorFrame(type, body);
      } catch (error) {
        expect(error).toSatisfy(isUnknownProtocol);
      }
    }
  });
});
