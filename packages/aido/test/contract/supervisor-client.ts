import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Driver } from "../../src/core/driver/driver.ts";
import { FrameReader } from "../../src/core/supervisor/frame-reader.ts";
import type { EndFrame, HostFrame, SupervisorFrame } from "../../src/core/supervisor/frames.ts";
import { encodeHostFrame } from "../../src/core/supervisor/host-frames.ts";
import {
  END_FLAG,
  EXEC_FLAG,
  PROTOCOL_VERSION,
  STREAM,
  TOKEN_BYTES,
} from "../../src/core/supervisor/protocol.ts";
import { decodeSupervisorFrame } from "../../src/core/supervisor/supervisor-frames.ts";

const ANSWER_MS = 30_000;

export interface ExecOptions {
  readonly env?: readonly string[];
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly user?: { uid: number; gid: number };
}

export interface ExecOutcome {
  readonly exitCode: number | undefined;
  readonly signal: number | undefined;
  readonly outOfMemory: boolean;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** The protocol at its barest, so that the contract asks a driver's stream and nothing of core's above it. */
export class SupervisorClient implements AsyncDisposable {
  readonly #stream: Duplex;
  readonly #waiting: {
    wanted: (frame: SupervisorFrame) => boolean;
    take: (frame: SupervisorFrame) => void;
  }[] = [];
  readonly #outputs = new Map<string, { stdout: Buffer[]; stderr: Buffer[] }>();
  #execs = 0;
  #failed: Error | undefined;
  #fail: ((error: Error) => void)[] = [];

  private constructor(stream: Duplex) {
    this.#stream = stream;
    const reader = new FrameReader((type, body) => this.#take(decodeSupervisorFrame(type, body)));
    stream.on("data", (chunk: Buffer) => reader.push(chunk));
    stream.on("error", (error) => this.#end(error));
    stream.on("close", () => this.#end(new Error("the supervisor closed the connection")));
  }

  static newToken(): Buffer {
    return randomBytes(TOKEN_BYTES);
  }

  /** Connects and says hello; the same token is needed for every connection to one start of a sandbox. */
  static async open(driver: Driver, sandboxId: string, token: Buffer): Promise<SupervisorClient> {
    const client = new SupervisorClient(await driver.connect(sandboxId));
    const welcome = client.#answer((frame) => frame.type === "welcome" || frame.type === "error");
    client.#send({ type: "hello", version: PROTOCOL_VERSION, token });
    const frame = await welcome;
    if (frame.type === "error") {
      client.#stream.destroy();
      throw new Error(`${frame.code} ${frame.message}`);
    }
    return client;
  }

  async ping(cookie: number): Promise<number> {
    const answer = this.#answer((frame) => frame.type === "pong");
    this.#send({ type: "ping", cookie });
    const frame = await answer;
    return frame.type === "pong" ? frame.cookie : -1;
  }

  async configure(options: {
    user: { uid: number; gid: number };
    workdir: string;
    deadlineMs?: number;
  }): Promise<void> {
    const answer = this.#answer((frame) => frame.type === "configured" || frame.type === "error");
    this.#send({
      type: "configure",
      deadlineMs: options.deadlineMs ?? 0,
      ...options.user,
      workdir: options.workdir,
    });
    const frame = await answer;
    if (frame.type === "error") throw new Error(`${frame.code} ${frame.message}`);
  }

  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecOutcome> {
    const { id, ended } = this.start(argv, options);
    const output = this.#outputs.get(id) ?? { stdout: [], stderr: [] };
    const end = await ended;
    return {
      exitCode: end.how === 1 ? end.code : undefined,
      signal: end.how === 2 ? end.code : undefined,
      outOfMemory: (end.flags & END_FLAG.outOfMemory) !== 0,
      timedOut: (end.flags & END_FLAG.timeout) !== 0,
      stdout: Buffer.concat(output.stdout).toString("utf8"),
      stderr: Buffer.concat(output.stderr).toString("utf8"),
    };
  }

  /** Starts a command without waiting for its end. */
  start(argv: readonly string[], options: ExecOptions = {}): { id: string; ended: Promise<EndFrame> } {
    this.#execs += 1;
    const id = `x${this.#execs}-${randomBytes(4).toString("hex")}`;
    this.#outputs.set(id, { stdout: [], stderr: [] });
    const ended = this.#answer(
      (frame) => (frame.type === "end" || frame.type === "error") && frame.id === id,
    ).then((frame) => {
      if (frame.type === "end") return frame;
      throw new Error(frame.type === "error" ? `${frame.code} ${frame.message} (errno ${frame.errno})` : "");
    });
    // A caller that only wants it started need not wait for the end.
    ended.catch(() => undefined);
    const { uid = 0, gid = 0 } = options.user ?? {};
    this.#send({
      type: "exec",
      id,
      flags: options.user === undefined ? 0 : EXEC_FLAG.user,
      uid,
      gid,
      cwd: options.cwd ?? "",
      argv,
      env: options.env ?? ["PATH=/usr/local/bin:/usr/bin:/bin"],
      rows: 0,
      cols: 0,
      timeoutMs: options.timeoutMs ?? 0,
      graceMs: 500,
      outputLimit: 0,
    });
    return { id, ended };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stream.closed) return;
    await new Promise<void>((resolve) => {
      this.#stream.once("close", () => resolve());
      this.#stream.destroy();
    });
  }

  #send(frame: HostFrame): void {
    this.#stream.write(encodeHostFrame(frame));
  }

  #take(frame: SupervisorFrame): void {
    if (frame.type === "output") {
      const output = this.#outputs.get(frame.id);
      (frame.stream === STREAM.stdout ? output?.stdout : output?.stderr)?.push(Buffer.from(frame.data));
      this.#send({
        type: "ack",
        id: frame.id,
        stream: frame.stream,
        offset: frame.offset + frame.data.length,
      });
    }
    const at = this.#waiting.findIndex((each) => each.wanted(frame));
    if (at >= 0) this.#waiting.splice(at, 1)[0]?.take(frame);
  }

  #answer(wanted: (frame: SupervisorFrame) => boolean): Promise<SupervisorFrame> {
    return new Promise((resolve, reject) => {
      if (this.#failed !== undefined) {
        reject(this.#failed);
        return;
      }
      const timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS);
      const take = (frame: SupervisorFrame) => {
        clearTimeout(timer);
        resolve(frame);
      };
      this.#waiting.push({ wanted, take });
      this.#fail.push((error) => {
        clearTimeout(timer);
        reject(error);
      });
    });
  }

  #end(error: Error): void {
    this.#failed ??= error;
    for (const fail of this.#fail.splice(0)) fail(error);
  }
}
