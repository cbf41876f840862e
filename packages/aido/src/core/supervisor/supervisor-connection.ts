import type { Duplex } from "node:stream";
import { AidoError, toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import { FrameReader } from "./frame-reader.ts";
import {
  type ErrorFrame,
  type ExecFrame,
  type HostFrame,
  type ListedExec,
  protocolError,
  type SupervisorFrame,
} from "./frames.ts";
import { encodeHostFrame, encodeStdinHead } from "./host-frames.ts";
import { HOST_FRAME, PROTOCOL_VERSION } from "./protocol.ts";
import { printable, refusalToError } from "./refusal.ts";
import { decodeSupervisorFrame } from "./supervisor-frames.ts";
import { withTimeLimit } from "./time-limit.ts";

const WELCOME_LIMIT_MS = 5_000;
const QUIET_MS = 5_000;
const SILENT_MS = 15_000;
/** Heartbeats a request may wait for its answer. */
const ANSWER_BEATS = 4;

/** Frames about one exec that answer no request. */
export type ExecEvent = Extract<
  SupervisorFrame,
  { type: "started" | "output" | "end" | "stdinAck" | "detached" | "error" }
>;

export interface ConnectionOptions {
  stream: Duplex;
  token: Uint8Array;
  clock: Clock;
  /** Before the first word: who writes to a supervisor that refused and closed loses what it said. */
  listenMs: number;
  /** What it raises ends the connection. */
  onExecEvent: (event: ExecEvent) => void;
  /** Also of one that was never welcomed. */
  onClose: (connection: SupervisorConnection, error: AidoError) => void;
}

interface Pending {
  resolve: (frame: SupervisorFrame) => void;
  reject: (error: AidoError) => void;
  beat: number;
}

/** One open stream to a supervisor: greets, keeps it alive, matches answers to requests. Never reconnects. */
export class SupervisorConnection {
  readonly #options: ConnectionOptions;
  readonly #stream: Duplex;
  readonly #pending = new Map<string, Pending[]>();
  readonly #ended = new AbortController();
  #failure: AidoError | undefined;
  /** Undefined until it is welcomed. */
  #boot: bigint | undefined;
  #hasHeard = false;
  #beat = 0;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#stream = options.stream;
    // Each exec that writes may wait for the stream to drain.
    this.#stream.setMaxListeners(0);
    const reader = new FrameReader((type, body) => this.#receive(decodeSupervisorFrame(type, body)));
    this.#stream.on("data", (chunk: Buffer) => {
      this.#hasHeard = true;
      if (this.#failure !== undefined) return;
      try {
        reader.push(chunk);
      } catch (error) {
        this.#fail(toAidoError(error));
      }
    });
    this.#stream.on("error", (error) => this.#fail(lost("the connection to its supervisor broke", error)));
    this.#stream.on("close", () => this.#fail(lost("the connection to its supervisor was closed")));
    this.#stream.on("end", () => this.#fail(lost("its supervisor closed the connection")));
    if (this.#stream.destroyed) this.#fail(lost("the connection to its supervisor broke at once"));
  }

  /** Resolves after WELCOME. A wrong token raises FORBIDDEN, silence DEADLINE_EXCEEDED. */
  static async open(options: ConnectionOptions, signal?: AbortSignal): Promise<SupervisorConnection> {
    const connection = new SupervisorConnection(options);
    try {
      const limit = {
        clock: options.clock,
        limitMs: WELCOME_LIMIT_MS,
        what: "The supervisor's welcome",
        signal,
      };
      await withTimeLimit(limit, () => connection.#greet());
    } catch (error) {
      connection.close();
      throw error;
    }
    void connection.#keepAlive();
    return connection;
  }

  /** Random at each start of the supervisor: tells a restarted one from a lost connection. */
  get boot(): bigint {
    return this.#boot ?? 0n;
  }

  get isClosed(): boolean {
    return this.#failure !== undefined;
  }

  /** Why it is closed. */
  get failure(): AidoError | undefined {
    return this.#failure;
  }

  send(frame: HostFrame): void {
    if (this.#failure !== undefined) return;
    if (frame.type !== "stdin") {
      this.#stream.write(encodeHostFrame(frame));
      return;
    }
    // Its data go out as they are, so they must stay what they are.
    this.#stream.cork();
    this.#stream.write(encodeStdinHead(frame));
    this.#stream.write(frame.data);
    this.#stream.uncork();
  }

  /** Undefined when the stream takes more at once; otherwise resolves when it does, or when it is closed. */
  drained(): Promise<void> | undefined {
    if (this.#failure !== undefined || !this.#stream.writableNeedDrain) return undefined;
    return new Promise((resolve) => {
      const done = () => {
        this.#stream.off("drain", done);
        this.#stream.off("close", done);
        resolve();
      };
      this.#stream.on("drain", done);
      this.#stream.on("close", done);
    });
  }

  async configure(frame: Extract<HostFrame, { type: "configure" }>): Promise<void> {
    await this.#request("configure", frame);
  }

  async exec(frame: ExecFrame): Promise<{ pid: number; existing: boolean }> {
    const answer = await this.#request(`exec:${frame.id}`, frame);
    if (answer.type !== "started") throw protocolError("EXEC was answered with something else");
    return answer;
  }

  async list(): Promise<readonly ListedExec[]> {
    const answer = await this.#request("list", { type: "list" });
    if (answer.type !== "listed") throw protocolError("LIST was answered with something else");
    return answer.execs;
  }

  /** SIGNAL, RESIZE and SHUTDOWN, which are answered with OK. */
  async command(frame: Extract<HostFrame, { type: "signal" | "resize" | "shutdown" }>): Promise<void> {
    const id = frame.type === "shutdown" ? "" : frame.id;
    await this.#request(`${HOST_FRAME[frame.type]}:${id}`, frame);
  }

  close(): void {
    this.#fail(lost("the connection to its supervisor was closed"));
  }

  async #greet(): Promise<void> {
    const { token, clock, listenMs } = this.#options;
    if (listenMs > 0) await clock.sleep(listenMs, this.#ended.signal);
    const welcome = await this.#request("hello", { type: "hello", version: PROTOCOL_VERSION, token });
    if (welcome.type !== "welcome" || welcome.version !== PROTOCOL_VERSION) {
      throw protocolError("its version is not ours");
    }
    this.#boot = welcome.boot;
  }

  #request(key: string, frame: HostFrame): Promise<SupervisorFrame> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      const pending = { resolve, reject, beat: this.#beat };
      const queue = this.#pending.get(key);
      if (queue === undefined) this.#pending.set(key, [pending]);
      else queue.push(pending);
      this.send(frame);
    });
  }

  #receive(frame: SupervisorFrame): void {
    switch (frame.type) {
      case "output":
      case "end":
      case "stdinAck":
      case "detached":
        this.#options.onExecEvent(frame);
        break;
      case "started":
        this.#options.onExecEvent(frame);
        this.#take(`exec:${frame.id}`)?.resolve(frame);
        break;
      case "welcome":
        this.#take("hello")?.resolve(frame);
        break;
      case "configured":
        this.#take("configure")?.resolve(frame);
        break;
      case "listed":
        this.#take("list")?.resolve(frame);
        break;
      case "ok":
        this.#take(`${frame.request}:${frame.id}`)?.resolve(frame);
        break;
      case "error":
        this.#refused(frame);
        break;
      case "pong":
      case "forgotten":
        break;
    }
  }

  #refused(frame: ErrorFrame): void {
    if (frame.code === "DENIED") {
      throw new AidoError("FORBIDDEN", "The sandbox's supervisor belongs to another owner", {
        hint: "Its token does not match this sandbox's record. Destroy the sandbox and make a new one.",
      });
    }
    if (frame.code === "LIMIT" && this.#boot === undefined) throw tooManyConnections();
    if (frame.id === "")
      throw protocolError(`it reported ${printable(frame.code)} ${printable(frame.message)}`);
    const error = refusalToError(frame);
    const isAboutStart = frame.code !== "NOT_FOUND" && frame.code !== "OFFSET_LOST";
    if (isAboutStart) this.#take(`exec:${frame.id}`)?.reject(error);
    for (const type of [HOST_FRAME.signal, HOST_FRAME.resize])
      this.#take(`${type}:${frame.id}`)?.reject(error);
    this.#options.onExecEvent(frame);
  }

  #take(key: string): Pending | undefined {
    const queue = this.#pending.get(key);
    const pending = queue?.shift();
    if (queue?.length === 0) this.#pending.delete(key);
    return pending;
  }

  async #keepAlive(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#ended;
    try {
      for (;;) {
        this.#hasHeard = false;
        await clock.sleep(QUIET_MS, signal);
        this.#beat += 1;
        if (this.#hasStuckRequest()) this.#fail(lost("its supervisor does not answer a request"));
        if (this.#hasHeard) continue;
        this.send({ type: "ping", cookie: this.#beat });
        await clock.sleep(SILENT_MS, signal);
        if (!this.#hasHeard) this.#fail(lost("its supervisor does not answer"));
      }
    } catch {
      // Closed.
    }
  }

  #hasStuckRequest(): boolean {
    for (const [first] of this.#pending.values()) {
      if (first !== undefined && this.#beat - first.beat > ANSWER_BEATS) return true;
    }
    return false;
  }

  #fail(error: AidoError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#ended.abort(error);
    this.#stream.destroy();
    for (const queue of this.#pending.values()) for (const pending of queue) pending.reject(error);
    this.#pending.clear();
    this.#options.onClose(this, error);
  }
}

/** The supervisor takes so many and no more; each process that has to do with the sandbox holds one. */
function tooManyConnections(): AidoError {
  return new AidoError("QUOTA_EXCEEDED", "Too many aido processes use this sandbox at once", {
    hint: "A sandbox takes 16. Wait for one of them to end, or let all of them use one server (`aido serve`).",
  });
}

function lost(why: string, cause?: unknown): AidoError {
  return new AidoError("CONTAINER_LOST", `The sandbox could not be reached: ${why}`, {
    ...(cause === undefined ? {} : { cause }),
  });
}
