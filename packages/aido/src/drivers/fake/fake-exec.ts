import { constants } from "node:os";
import type { Clock } from "../../core/clock.ts";
import type { EndFrame, ExecFrame, ListedExec, SupervisorFrame } from "../../core/supervisor/frames.ts";
import { END_FLAG, EXEC_FLAG, STREAM } from "../../core/supervisor/protocol.ts";
import type { FakeProcess, FakeProgram } from "./fake-program.ts";
import { FakeRing } from "./fake-ring.ts";
import { FakeStdin } from "./fake-stdin.ts";
import type { FakeTree } from "./fake-tree.ts";

const { SIGKILL, SIGTERM } = constants.signals;

export interface FakeExecContext {
  program: FakeProgram;
  pid: number;
  user: { uid: number; gid: number };
  cwd: string;
  files: FakeTree;
  clock: Clock;
}

/** One exec of a fake supervisor: its rings, its standard input, its end. */
export class FakeExec {
  readonly frame: ExecFrame;
  readonly pid: number;
  readonly rings = { [STREAM.stdout]: new FakeRing(), [STREAM.stderr]: new FakeRing() };
  readonly stdin: FakeStdin;
  readonly #clock: Clock;
  readonly #killed = new AbortController();
  #trap: ((signal: number) => void) | undefined;
  #send: ((frame: SupervisorFrame) => void) | undefined;
  #flags = 0;
  #end: EndFrame | undefined;
  #endSent = false;

  constructor(frame: ExecFrame, context: FakeExecContext) {
    this.frame = frame;
    this.pid = context.pid;
    this.#clock = context.clock;
    this.stdin = new FakeStdin((frame.flags & EXEC_FLAG.stdin) !== 0, (offset, closed) =>
      this.#send?.({ type: "stdinAck", id: frame.id, offset, closed }),
    );
    if (frame.timeoutMs > 0) void this.#watchTimeout();
    void this.#run(context);
  }

  /** From now on frames go here; the former receiver is returned. */
  attach(
    send: (frame: SupervisorFrame) => void,
    stdoutOffset: number,
    stderrOffset: number,
  ): "ok" | "OFFSET_LOST" | "PROTOCOL" {
    const stdout = this.rings[STREAM.stdout];
    const stderr = this.rings[STREAM.stderr];
    if (stdoutOffset < stdout.base || stderrOffset < stderr.base) return "OFFSET_LOST";
    if (stdoutOffset > stdout.total || stderrOffset > stderr.total) return "PROTOCOL";
    this.#send = send;
    this.#endSent = false;
    this.stdin.tell();
    stdout.sent = stdoutOffset;
    stderr.sent = stderrOffset;
    return "ok";
  }

  isAttachedTo(send: (frame: SupervisorFrame) => void): boolean {
    return this.#send === send;
  }

  get receiver(): ((frame: SupervisorFrame) => void) | undefined {
    return this.#send;
  }

  detach(): void {
    this.#send = undefined;
  }

  /** Sends what the attached connection has not had yet, the end last. */
  pump(): void {
    const send = this.#send;
    if (send === undefined) return;
    for (const stream of [STREAM.stdout, STREAM.stderr] as const) {
      const ring = this.rings[stream];
      for (let part = ring.next(); part !== undefined; part = ring.next()) {
        send({ type: "output", id: this.frame.id, stream, offset: part.offset, data: part.data });
      }
    }
    if (this.#end === undefined || this.#endSent) return;
    this.#endSent = true;
    send(this.#end);
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  get isMain(): boolean {
    return (this.frame.flags & EXEC_FLAG.main) !== 0;
  }

  /** As a shell says it. */
  get exitCode(): number {
    const { how, code } = this.#end ?? { how: 2, code: SIGKILL };
    return how === 2 ? 128 + code : code;
  }

  listed(): ListedExec {
    const stdout = this.rings[STREAM.stdout];
    const stderr = this.rings[STREAM.stderr];
    return {
      id: this.frame.id,
      ended: this.isEnded,
      stdoutBase: stdout.base,
      stdoutTotal: stdout.total,
      stderrBase: stderr.base,
      stderrTotal: stderr.total,
    };
  }

  kill(signal: number, graceMs: number, flags: number = END_FLAG.killed): void {
    if (this.isEnded) return;
    if (signal !== 0) this.#flags |= flags;
    if (signal === SIGKILL || (signal !== 0 && this.#trap === undefined)) {
      this.#finish(2, signal);
      return;
    }
    this.#trap?.(signal);
    if (signal === SIGTERM && graceMs > 0) {
      this.#clock
        .sleep(graceMs, this.#killed.signal)
        .then(() => this.#finish(2, SIGKILL))
        .catch(() => undefined);
    }
  }

  #finish(how: number, code: number): void {
    if (this.#end !== undefined) return;
    this.#end = {
      type: "end",
      id: this.frame.id,
      how,
      code,
      flags: this.#flags | (this.isMain ? END_FLAG.main : 0),
      stdoutTotal: this.rings[STREAM.stdout].total,
      stderrTotal: this.rings[STREAM.stderr].total,
      cpuMs: 0,
      maxRssBytes: 1_048_576,
    };
    this.#killed.abort(new Error("the process was killed"));
    this.stdin.end();
    this.pump();
  }

  async #watchTimeout(): Promise<void> {
    try {
      await this.#clock.sleep(this.frame.timeoutMs, this.#killed.signal);
      this.kill(SIGTERM, this.frame.graceMs, END_FLAG.timeout);
    } catch {
      // The command ended before its time.
    }
  }

  async #run(context: FakeExecContext): Promise<void> {
    try {
      const code = await context.program(this.#process(context));
      this.#finish(1, (code ?? 0) & 255);
    } catch (error) {
      if (this.isEnded) return;
      const message = error instanceof Error ? error.message : String(error);
      await this.#write(STREAM.stderr, `${message}\n`).catch(() => undefined);
      this.#finish(1, 1);
    }
  }

  #process(context: FakeExecContext): FakeProcess {
    const { frame } = this;
    const pty = (frame.flags & EXEC_FLAG.pty) !== 0;
    const pairs = frame.env.map((pair) => [
      pair.slice(0, pair.indexOf("=")),
      pair.slice(pair.indexOf("=") + 1),
    ]);
    return {
      argv: frame.argv,
      env: Object.fromEntries(pairs) as Record<string, string>,
      cwd: context.cwd,
      ...context.user,
      pty,
      stdin: this.stdin,
      signal: this.#killed.signal,
      files: context.files,
      stdout: (data) => this.#write(STREAM.stdout, data),
      stderr: (data) => this.#write(pty ? STREAM.stdout : STREAM.stderr, data),
      sleep: (ms) => this.#clock.sleep(ms, this.#killed.signal),
      trap: (handler) => {
        this.#trap = handler;
      },
    };
  }

  async #write(stream: 1 | 2, data: string | Uint8Array): Promise<void> {
    const ring = this.rings[stream];
    const limit = this.frame.outputLimit;
    let left = Buffer.from(data);
    while (left.length > 0) {
      await ring.space(this.#killed.signal);
      if (this.isEnded) throw new Error("the process was killed");
      const allowed = limit > 0 ? Math.min(left.length, limit - ring.total) : left.length;
      const taken = ring.put(left.subarray(0, allowed));
      left = left.subarray(taken);
      this.pump();
      if (limit > 0 && ring.total >= limit && left.length > 0) {
        this.#flags |= END_FLAG.outputLimit;
        this.#finish(2, SIGKILL);
        throw new Error("the process was killed");
      }
    }
  }
}
