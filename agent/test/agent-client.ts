import { connect, type Socket } from "node:net";
import {
  EXEC_FLAG,
  HOST_FRAME,
  PROTOCOL_VERSION,
  STREAM,
} from "../../packages/aido/src/core/supervisor/protocol.ts";
import { FrameBytes, readFrame, type SupervisorFrame } from "./agent-frames.ts";

const WAIT_MS = 20_000;

export interface ExecOptions {
  readonly env?: readonly string[];
  readonly cwd?: string;
  readonly flags?: number;
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly rows?: number;
  readonly cols?: number;
  readonly timeoutMs?: number;
  readonly graceMs?: number;
  readonly outputLimit?: number;
}

export interface ExecResult {
  readonly how: number;
  readonly code: number;
  readonly flags: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly end: Extract<SupervisorFrame, { type: "end" }>;
}

type FrameOf<T extends SupervisorFrame["type"]> = Extract<SupervisorFrame, { type: T }>;

/** A plain-spoken client: every frame that came is kept in order, and waiting looks through them. */
export class AgentClient implements Disposable {
  readonly #socket: Socket;
  readonly frames: SupervisorFrame[] = [];
  #received: Buffer = Buffer.alloc(0);
  #closed = false;
  #wake: (() => void)[] = [];
  autoAck = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  static async open(path: string): Promise<AgentClient> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new AgentClient(socket);
  }

  get closed(): boolean {
    return this.#closed;
  }

  #end(): void {
    this.#closed = true;
    this.#notify();
  }

  #notify(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= 4) {
      const length = this.#received.readUInt32LE(0);
      if (this.#received.length < 4 + length) break;
      const frame = readFrame(this.#received.subarray(4, 4 + length));
      this.#received = this.#received.subarray(4 + length);
      this.frames.push(frame);
      if (frame.type === "output" && this.autoAck)
        this.ack(frame.id, frame.stream, frame.offset + frame.bytes.length);
    }
    this.#notify();
  }

  /** Stops reading from the socket, as a stuck host does. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  raw(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  send(type: number, body: FrameBytes = new FrameBytes()): void {
    this.raw(body.frame(type));
  }

  /** The first frame that fits, now or later. It fails when the connection closes or nothing comes. */
  async wait<T extends SupervisorFrame["type"]>(
    type: T,
    fits: (frame: FrameOf<T>) => boolean = () => true,
  ): Promise<FrameOf<T>> {
    const isIt = (frame: SupervisorFrame): frame is FrameOf<T> =>
      frame.type === type && fits(frame as FrameOf<T>);
    return this.until(() => this.frames.find(isIt), `a frame ${type}`);
  }

  async until<T>(look: () => T | undefined, what: string): Promise<T> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.#closed) throw new Error(`The connection closed before ${what}; got ${this.#summary()}`);
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`Nothing within ${WAIT_MS} ms: ${what}; got ${this.#summary()}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  async waitClosed(): Promise<void> {
    const deadline = Date.now() + WAIT_MS;
    while (!this.#closed) {
      if (Date.now() > deadline) throw new Error("The connection stayed open");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1000);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  #summary(): string {
    return JSON.stringify(
      this.frames
        .slice(-8)
        .map((frame) => (frame.type === "output" ? { ...frame, bytes: frame.bytes.length } : frame)),
      (_, value) => (typeof value === "bigint" ? value.toString() : value),
    );
  }

  async hello(token: Uint8Array): Promise<FrameOf<"welcome">> {
    this.send(HOST_FRAME.hello, new FrameBytes().u16(PROTOCOL_VERSION).raw(token));
    return this.wait("welcome");
  }

  async configure(
    options: { deadlineMs?: number; uid?: number; gid?: number; workdir?: string } = {},
  ): Promise<void> {
    const body = new FrameBytes().u64(options.deadlineMs ?? 0);
    this.send(
      HOST_FRAME.configure,
      body
        .u32(options.uid ?? 0)
        .u32(options.gid ?? 0)
        .str(options.workdir ?? ""),
    );
    await this.wait("configured");
  }

  exec(id: string, argv: readonly string[], options: ExecOptions = {}): void {
    const flags = (options.flags ?? 0) | (options.user === undefined ? 0 : EXEC_FLAG.user);
    const body = new FrameBytes().str(id).u8(flags);
    body
      .u32(options.user?.uid ?? 0)
      .u32(options.user?.gid ?? 0)
      .str(options.cwd ?? "")
      .list(argv);
    body
      .list(options.env ?? [])
      .u16(options.rows ?? 0)
      .u16(options.cols ?? 0);
    this.send(
      HOST_FRAME.exec,
      body
        .u64(options.timeoutMs ?? 0)
        .u32(options.graceMs ?? 0)
        .u64(options.outputLimit ?? 0),
    );
  }

  ack(id: string, stream: number, offset: number): void {
    this.send(HOST_FRAME.ack, new FrameBytes().str(id).u8(stream).u64(offset));
  }

  attach(id: string, stdout = 0, stderr = 0): void {
    this.send(HOST_FRAME.attach, new FrameBytes().str(id).u64(stdout).u64(stderr));
  }

  stdin(id: string, offset: number, bytes: Uint8Array): void {
    this.send(HOST_FRAME.stdin, new FrameBytes().str(id).u64(offset).raw(bytes));
  }

  stdinClose(id: string, offset: number): void {
    this.send(HOST_FRAME.stdinClose, new FrameBytes().str(id).u64(offset));
  }

  resize(id: string, rows: number, cols: number): void {
    this.send(HOST_FRAME.resize, new FrameBytes().str(id).u16(rows).u16(cols));
  }

  signal(id: string, signal: number, scope: number, graceMs = 0): void {
    this.send(HOST_FRAME.signal, new FrameBytes().str(id).u8(signal).u8(scope).u32(graceMs));
  }

  forget(id: string): void {
    this.send(HOST_FRAME.forget, new FrameBytes().str(id));
  }

  async list(): Promise<FrameOf<"listed">> {
    const before = this.frames.length;
    this.send(HOST_FRAME.list);
    return this.until(
      () => this.frames.slice(before).find((frame): frame is FrameOf<"listed"> => frame.type === "listed"),
      "LISTED",
    );
  }

  shutdown(graceMs: number): void {
    this.send(HOST_FRAME.shutdown, new FrameBytes().u32(graceMs));
  }

  /** All bytes of a stream, checked to come without gap or overlap from the first offset on. */
  output(id: string, stream: number): { readonly start: number; readonly bytes: Buffer } {
    const parts = this.frames.filter(
      (frame): frame is FrameOf<"output"> =>
        frame.type === "output" && frame.id === id && frame.stream === stream,
    );
    const start = parts[0]?.offset ?? 0;
    let at = start;
    for (const part of parts) {
      if (part.offset !== at) throw new Error(`Output at ${part.offset} where ${at} was due`);
      at += part.bytes.length;
    }
    return { start, bytes: Buffer.concat(parts.map((part) => part.bytes)) };
  }

  async end(id: string): Promise<ExecResult> {
    const end = await this.wait("end", (frame) => frame.id === id);
    const { how, code, flags } = end;
    const stdout = this.output(id, STREAM.stdout).bytes;
    return { how, code, flags, stdout, stderr: this.output(id, STREAM.stderr).bytes, end };
  }

  async run(id: string, argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    this.exec(id, argv, options);
    return this.end(id);
  }

  async error(id: string): Promise<FrameOf<"error">> {
    return this.wait("error", (frame) => frame.id === id);
  }

  /** Resolves when all that was said is with the kernel. */
  flushed(): Promise<void> {
    return new Promise((resolve) => this.#socket.write(new Uint8Array(0), () => resolve()));
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
