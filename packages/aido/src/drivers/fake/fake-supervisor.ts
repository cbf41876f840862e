import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { FrameReader } from "../../core/supervisor/frame-reader.ts";
import type { ExecFrame, HostFrame, SupervisorFrame } from "../../core/supervisor/frames.ts";
import { decodeHostFrame } from "../../core/supervisor/host-frames.ts";
import { EXEC_FLAG, HOST_FRAME, STREAM, SUPERVISOR_EXIT } from "../../core/supervisor/protocol.ts";
import { encodeSupervisorFrame } from "../../core/supervisor/supervisor-frames.ts";
import { FakeExec } from "./fake-exec.ts";
import type { FakeProgram } from "./fake-program.ts";
import { fakeTool } from "./fake-tools.ts";
import type { FakeTree } from "./fake-tree.ts";

const MAX_CONNECTIONS = 16;

type Send = (frame: SupervisorFrame) => void;

export interface FakeSupervisorOptions {
  clock: Clock;
  files: FakeTree;
  user: { uid: number; gid: number };
  workdir: string;
  program: (name: string) => FakeProgram | undefined;
  onExit: (exitCode: number) => void;
}

/** Speaks the real frames; runs functions instead of processes. */
export class FakeSupervisor {
  readonly #options: FakeSupervisorOptions;
  readonly #boot = randomBytes(8).readBigUInt64LE();
  readonly #execs = new Map<string, FakeExec>();
  readonly #connections = new Set<Duplex>();
  readonly #ended = new AbortController();
  /** Every EXEC that started something, builtin tools excepted. */
  readonly started: ExecFrame[] = [];
  #token: Buffer | undefined;
  #user: { uid: number; gid: number };
  #workdir: string;
  #deadline = new AbortController();
  #nextPid = 2;
  #isStalled = false;
  #areToolsHalted = false;

  constructor(options: FakeSupervisorOptions) {
    this.#options = options;
    this.#user = options.user;
    this.#workdir = options.workdir;
  }

  accept(stream: Duplex): void {
    if (this.#connections.size >= MAX_CONNECTIONS) {
      const refusal = { id: "", code: "LIMIT", errno: 0, message: "too many connections" };
      stream.end(encodeSupervisorFrame({ type: "error", ...refusal }));
      return;
    }
    this.#connections.add(stream);
    const send: Send = (frame) => {
      if (!this.#isStalled && !stream.destroyed) stream.write(encodeSupervisorFrame(frame));
    };
    const reader = new FrameReader((type, body) => this.#handle(decodeHostFrame(type, body), send, stream));
    stream.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        send({ type: "error", id: "", code: "PROTOCOL", errno: 0, message: String(error) });
        stream.end();
      }
    });
    stream.on("error", () => undefined);
    stream.on("close", () => {
      this.#connections.delete(stream);
      for (const exec of this.#execs.values()) if (exec.isAttachedTo(send)) exec.detach();
    });
  }

  dropConnections(): void {
    for (const stream of this.#connections) stream.destroy();
    this.#connections.clear();
    for (const exec of this.#execs.values()) exec.detach();
  }

  /** Neither answers nor sends until told otherwise; what would have been sent meanwhile is gone. */
  stall(isStalled: boolean): void {
    this.#isStalled = isStalled;
  }

  haltTools(areHalted: boolean): void {
    this.#areToolsHalted = areHalted;
  }

  /** Sends raw bytes on every connection, for tests of hostile input. */
  sendRaw(bytes: Uint8Array): void {
    // Not on those that are opened because of it.
    for (const stream of [...this.#connections]) stream.write(bytes);
  }

  exit(exitCode: number): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#deadline.abort();
    this.dropConnections();
    for (const exec of this.#execs.values()) exec.kill(9, 0);
    const main = [...this.#execs.values()].find(({ isMain }) => isMain);
    this.#options.onExit(exitCode === SUPERVISOR_EXIT.shutdown ? (main?.exitCode ?? exitCode) : exitCode);
  }

  #handle(frame: HostFrame, send: Send, stream: Duplex): void {
    if (frame.type === "hello") {
      this.#hello(frame.token, send, stream);
      return;
    }
    if (this.#token === undefined) {
      send({ type: "error", id: "", code: "NOT_CLAIMED", errno: 0, message: "say HELLO first" });
      return;
    }
    switch (frame.type) {
      case "ping":
        send({ type: "pong", cookie: frame.cookie });
        return;
      case "configure":
        this.#configure(frame, send);
        return;
      case "exec":
        this.#exec(frame, send);
        return;
      case "list":
        send({ type: "listed", execs: [...this.#execs.values()].map((exec) => exec.listed()) });
        return;
      case "shutdown":
        send({ type: "ok", request: HOST_FRAME.shutdown, id: "" });
        this.exit(SUPERVISOR_EXIT.shutdown);
        return;
      default:
        this.#handleExec(frame, send);
        return;
    }
  }

  #hello(token: Uint8Array, send: Send, stream: Duplex): void {
    const given = Buffer.from(token);
    const isClaimed = this.#token !== undefined;
    this.#token ??= given;
    if (!timingSafeEqual(this.#token, given)) {
      send({ type: "error", id: "", code: "DENIED", errno: 0, message: "wrong token" });
      stream.end();
      return;
    }
    send({ type: "welcome", version: 1, boot: this.#boot, claimed: isClaimed });
  }

  #configure(frame: Extract<HostFrame, { type: "configure" }>, send: Send): void {
    this.#user = { uid: frame.uid, gid: frame.gid };
    if (frame.workdir !== "") this.#workdir = frame.workdir;
    this.#deadline.abort();
    this.#deadline = new AbortController();
    if (frame.deadlineMs > 0) {
      this.#options.clock
        .sleep(frame.deadlineMs, this.#deadline.signal)
        .then(() => this.exit(SUPERVISOR_EXIT.deadline))
        .catch(() => undefined);
    }
    this.#options.files
      .mkdir("/", this.#workdir)
      .catch(() => undefined)
      .finally(() => send({ type: "configured" }));
  }

  #exec(frame: ExecFrame, send: Send): void {
    const known = this.#execs.get(frame.id);
    if (known !== undefined) {
      send({ type: "started", id: frame.id, pid: known.pid, existing: true });
      this.#attach(known, { stdoutOffset: 0, stderrOffset: 0 }, send);
      return;
    }
    const isTool = (frame.flags & EXEC_FLAG.builtin) !== 0;
    const name = frame.argv[0] ?? "";
    const tool = this.#areToolsHalted ? haltedTool : fakeTool(name);
    const program = isTool ? tool : this.#options.program(name.slice(name.lastIndexOf("/") + 1));
    if (program === undefined) {
      send({
        type: "error",
        id: frame.id,
        code: "START_FAILED",
        errno: 2,
        message: `execve: ${name}: ENOENT`,
      });
      return;
    }
    const hasUser = (frame.flags & EXEC_FLAG.user) !== 0;
    const pid = this.#nextPid++;
    send({ type: "started", id: frame.id, pid, existing: false });
    if (!isTool) this.started.push(frame);
    const exec = new FakeExec(frame, {
      program,
      pid,
      user: hasUser ? { uid: frame.uid, gid: frame.gid } : this.#user,
      cwd: frame.cwd === "" ? this.#workdir : frame.cwd,
      files: this.#options.files,
      clock: this.#options.clock,
    });
    this.#execs.set(frame.id, exec);
    exec.attach(send, 0, 0);
    exec.pump();
  }

  #attach(exec: FakeExec, offsets: { stdoutOffset: number; stderrOffset: number }, send: Send): void {
    const former = exec.receiver;
    const answer = exec.attach(send, offsets.stdoutOffset, offsets.stderrOffset);
    if (answer !== "ok") {
      send({ type: "error", id: exec.frame.id, code: answer, errno: 0, message: "cannot attach there" });
      return;
    }
    if (former !== undefined && former !== send) former({ type: "detached", id: exec.frame.id });
    exec.pump();
  }

  #handleExec(frame: Extract<HostFrame, { id: string }>, send: Send): void {
    const exec = this.#execs.get(frame.id);
    if (exec === undefined) {
      if (frame.type === "forget") send({ type: "forgotten", id: frame.id });
      else send({ type: "error", id: frame.id, code: "NOT_FOUND", errno: 0, message: "no such exec" });
      return;
    }
    switch (frame.type) {
      case "attach":
        this.#attach(exec, frame, send);
        return;
      case "ack":
        if (exec.isAttachedTo(send))
          exec.rings[frame.stream === STREAM.stderr ? STREAM.stderr : STREAM.stdout].ack(frame.offset);
        return;
      case "stdin":
        if (!exec.stdin.push(frame.offset, Buffer.from(frame.data))) {
          send({
            type: "error",
            id: frame.id,
            code: "PROTOCOL",
            errno: 0,
            message: "beyond the stdin window",
          });
        }
        return;
      case "stdinClose":
        exec.stdin.close(frame.offset);
        return;
      case "resize":
        send({ type: "ok", request: HOST_FRAME.resize, id: frame.id });
        return;
      case "signal":
        send({ type: "ok", request: HOST_FRAME.signal, id: frame.id });
        exec.kill(frame.signal, frame.graceMs);
        return;
      case "forget":
        if (exec.isEnded) this.#execs.delete(frame.id);
        send({ type: "forgotten", id: frame.id });
        if (exec.isEnded && exec.isMain) this.exit(exec.exitCode);
        return;
    }
  }
}

/** Only KILL ends a stopped process. */
const haltedTool: FakeProgram = async ({ trap, signal }) => {
  trap(() => undefined);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
};
