import { SUPERVISOR_FRAME } from "../../packages/aido/src/core/supervisor/protocol.ts";

/** Builds a frame's body field by field. */
export class FrameBytes {
  readonly #parts: Buffer[] = [];

  #put(size: number, write: (to: Buffer) => void): this {
    const bytes = Buffer.alloc(size);
    write(bytes);
    this.#parts.push(bytes);
    return this;
  }

  u8(value: number): this {
    return this.#put(1, (to) => to.writeUInt8(value));
  }
  u16(value: number): this {
    return this.#put(2, (to) => to.writeUInt16LE(value));
  }
  u32(value: number): this {
    return this.#put(4, (to) => to.writeUInt32LE(value));
  }
  u64(value: number): this {
    return this.#put(8, (to) => to.writeBigUInt64LE(BigInt(value)));
  }
  raw(bytes: Uint8Array): this {
    this.#parts.push(Buffer.from(bytes));
    return this;
  }
  str(text: string): this {
    const bytes = Buffer.from(text);
    return this.u32(bytes.length).raw(bytes);
  }
  list(items: readonly string[]): this {
    this.u32(items.length);
    for (const item of items) this.str(item);
    return this;
  }

  frame(type: number): Buffer {
    const body = Buffer.concat(this.#parts);
    const header = Buffer.alloc(5);
    header.writeUInt32LE(body.length + 1);
    header.writeUInt8(type, 4);
    return Buffer.concat([header, body]);
  }
}

export interface ListedExec {
  readonly id: string;
  readonly state: number;
  readonly stdoutBase: number;
  readonly stdoutTotal: number;
  readonly stderrBase: number;
  readonly stderrTotal: number;
}

export type SupervisorFrame =
  | { type: "welcome"; version: number; boot: bigint; claimed: number }
  | { type: "pong"; cookie: number }
  | { type: "configured" }
  | { type: "started"; id: string; pid: number; existing: number }
  | { type: "output"; id: string; stream: number; offset: number; bytes: Buffer }
  | { type: "stdinAck"; id: string; offset: number; closed: number }
  | {
      type: "end";
      id: string;
      how: number;
      code: number;
      flags: number;
      stdoutTotal: number;
      stderrTotal: number;
      cpuMs: number;
      maxRssBytes: number;
    }
  | { type: "error"; id: string; code: string; errno: number; message: string }
  | { type: "listed"; execs: readonly ListedExec[] }
  | { type: "detached"; id: string }
  | { type: "forgotten"; id: string }
  | { type: "ok"; request: number; id: string };

class Fields {
  readonly #bytes: Buffer;
  #at = 1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  #next(size: number): Buffer {
    if (this.#at + size > this.#bytes.length) throw new Error("A frame of the supervisor is too short");
    this.#at += size;
    return this.#bytes.subarray(this.#at - size, this.#at);
  }

  u8 = (): number => this.#next(1).readUInt8();
  u16 = (): number => this.#next(2).readUInt16LE();
  u32 = (): number => this.#next(4).readUInt32LE();
  big = (): bigint => this.#next(8).readBigUInt64LE();
  u64 = (): number => Number(this.big());
  str = (): string => this.#next(this.u32()).toString();
  rest = (): Buffer => this.#next(this.#bytes.length - this.#at);

  done<T>(frame: T): T {
    if (this.#at !== this.#bytes.length) throw new Error("A frame of the supervisor has bytes left over");
    return frame;
  }
}

function readListed(from: Fields): SupervisorFrame {
  const count = from.u32();
  const execs = Array.from({ length: count }, () => ({
    id: from.str(),
    state: from.u8(),
    stdoutBase: from.u64(),
    stdoutTotal: from.u64(),
    stderrBase: from.u64(),
    stderrTotal: from.u64(),
  }));
  return { type: "listed", execs };
}

const READERS: Readonly<Record<number, (from: Fields) => SupervisorFrame>> = {
  [SUPERVISOR_FRAME.welcome]: (f) => ({ type: "welcome", version: f.u16(), boot: f.big(), claimed: f.u8() }),
  [SUPERVISOR_FRAME.pong]: (f) => ({ type: "pong", cookie: f.u64() }),
  [SUPERVISOR_FRAME.configured]: () => ({ type: "configured" }),
  [SUPERVISOR_FRAME.started]: (f) => ({ type: "started", id: f.str(), pid: f.u32(), existing: f.u8() }),
  [SUPERVISOR_FRAME.output]: (f) => ({
    type: "output",
    id: f.str(),
    stream: f.u8(),
    offset: f.u64(),
    bytes: f.rest(),
  }),
  [SUPERVISOR_FRAME.stdinAck]: (f) => ({ type: "stdinAck", id: f.str(), offset: f.u64(), closed: f.u8() }),
  [SUPERVISOR_FRAME.end]: (f) => ({
    type: "end",
    id: f.str(),
    how: f.u8(),
    code: f.u32(),
    flags: f.u8(),
    stdoutTotal: f.u64(),
    stderrTotal: f.u64(),
    cpuMs: f.u64(),
    maxRssBytes: f.u64(),
  }),
  [SUPERVISOR_FRAME.error]: (f) => ({
    type: "error",
    id: f.str(),
    code: f.str(),
    errno: f.u32(),
    message: f.str(),
  }),
  [SUPERVISOR_FRAME.listed]: readListed,
  [SUPERVISOR_FRAME.detached]: (f) => ({ type: "detached", id: f.str() }),
  [SUPERVISOR_FRAME.forgotten]: (f) => ({ type: "forgotten", id: f.str() }),
  [SUPERVISOR_FRAME.ok]: (f) => ({ type: "ok", request: f.u8(), id: f.str() }),
};

/** Reads one frame without its length. Anything odd throws: the supervisor must keep to the page. */
export function readFrame(bytes: Buffer): SupervisorFrame {
  const from = new Fields(bytes);
  const type = bytes.readUInt8(0);
  const read = READERS[type];
  if (read === undefined) throw new Error(`Unknown frame 0x${type.toString(16)}`);
  return from.done(read(from));
}
