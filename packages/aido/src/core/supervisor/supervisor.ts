import { AidoError, type OutputStream, type TerminalSize } from "@aido/sdk/protocol";
import type { ExecFrame, ListedExec } from "./frames.ts";
import { type ExecListener, LiveExec } from "./live-exec.ts";
import { EXEC_FLAG, SIGNAL_SCOPE } from "./protocol.ts";
import { refusalToError } from "./refusal.ts";
import type { ExecEvent, SupervisorConnection } from "./supervisor-connection.ts";
import { SupervisorLink, type SupervisorOptions } from "./supervisor-link.ts";
import { orAborted } from "./time-limit.ts";
import { type ToolOptions, ToolRun } from "./tool-run.ts";

/** Connections one request may outlive; each is replaced by the link with pauses in between. */
const MAX_ATTEMPTS = 4;

export interface ExecSpec {
  id: string;
  argv: readonly string[];
  /** `NAME=value` */
  env: readonly string[];
  /** Empty means the workdir. */
  cwd: string;
  /** Undefined means the user of `configure`. */
  user: { uid: number; gid: number } | undefined;
  stdin: boolean;
  pty: TerminalSize | undefined;
  /** 0 means none. */
  timeoutMs: number;
  graceMs: number;
  /** Bytes per stream; 0 means none. */
  outputLimit: number;
  /** argv[0] names one of the supervisor's builtin tools. */
  isTool: boolean;
  /** Its end is the sandbox's: the supervisor exits with its code once the end is `forget`ten. */
  isMain?: boolean | undefined;
}

export interface KillOptions {
  signal: number;
  scope: keyof typeof SIGNAL_SCOPE;
  graceMs: number;
}

/**
 * One sandbox's supervisor as core sees it. Connects when first needed; after a lost connection it reads on where
 * it stood, and only when the container is gone do its execs end as lost.
 */
export class Supervisor {
  readonly #link: SupervisorLink;
  readonly #live = new Map<string, LiveExec>();

  constructor(options: SupervisorOptions) {
    this.#link = new SupervisorLink(options, {
      onExecEvent: (event) => this.#onExecEvent(event),
      onConnected: (connection, isSameBoot) => this.#onConnected(connection, isSameBoot),
      onGone: (error) => this.#loseAll(error),
      isNeeded: () => [...this.#live.values()].some((exec) => !exec.isEnded),
    });
  }

  async configure(
    settings: { deadlineMs: number; uid: number; gid: number; workdir: string },
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#request((connection) => connection.configure({ type: "configure", ...settings }), signal);
  }

  /**
   * Resolves when the command has started. Raises EXECUTION_FAILED with the system's error when it could not be, and
   * an abort kills what may have been started. Idempotent by id.
   */
  async startExec(
    spec: ExecSpec,
    listener: ExecListener,
    signal?: AbortSignal,
  ): Promise<{ pid: number; existing: boolean }> {
    const exec = new LiveExec(spec.id, listener, (frame) => this.#link.current?.send(frame), undefined);
    const frame = toExecFrame(spec);
    this.#live.set(spec.id, exec);
    try {
      return await this.#request((connection) => connection.exec(frame), signal);
    } catch (error) {
      if (this.#live.get(spec.id) === exec) this.#live.delete(spec.id);
      if (signal?.aborted) this.#abandon(spec.id);
      throw error;
    }
  }

  /**
   * Reads on from the given offsets, taking over from whoever did. Raises OUTPUT_LOST when they are no longer held and
   * EXECUTION_NOT_FOUND when the exec is unknown; later trouble is told to the listener.
   */
  async attach(
    id: string,
    offsets: { stdout: number; stderr: number },
    listener: ExecListener,
    signal?: AbortSignal,
  ): Promise<void> {
    const exec = new LiveExec(id, listener, (frame) => this.#link.current?.send(frame), offsets);
    await this.#request(async (connection) => {
      this.#live.set(id, exec);
      exec.isAttaching = true;
      connection.send(exec.attachFrame());
      for (const frame of exec.offsetFrames()) connection.send(frame);
      // Requests are handled in order: when this one is answered, a refusal of the attach has been heard.
      await connection.list();
      exec.isAttaching = false;
    }, signal);
    if (exec.refusal !== undefined) throw exec.refusal;
  }

  /** Everything before the offset is safe with the host. Free of cost when it tells nothing new. */
  ack(id: string, stream: OutputStream, offset: number): void {
    const frame = this.#live.get(id)?.ackFrame(stream, offset);
    if (frame !== undefined) this.#link.current?.send(frame);
  }

  /** For an exec that this process follows. Resolves when the bytes are taken. */
  async writeStdin(id: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#get(id)?.stdin.write(data, signal);
  }

  /** For input that goes on: resolves when the bytes are on their way, of which there is a window at most. */
  async passStdin(id: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#get(id)?.stdin.pass(data, signal);
  }

  /** All of its input at once, unless it was given before. */
  async giveStdin(id: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#get(id)?.stdin.give(data, signal);
  }

  async closeStdin(id: string, signal?: AbortSignal): Promise<void> {
    await this.#get(id)?.stdin.close(signal);
  }

  async resize(id: string, size: TerminalSize, signal?: AbortSignal): Promise<void> {
    await this.#request((connection) => connection.command({ type: "resize", id, ...size }), signal);
  }

  /** Raises EXECUTION_NOT_FOUND when the supervisor does not know the exec. */
  async kill(id: string, options: KillOptions, signal?: AbortSignal): Promise<void> {
    const scope = SIGNAL_SCOPE[options.scope];
    const frame = { type: "signal" as const, id, signal: options.signal, scope, graceMs: options.graceMs };
    await this.#request((connection) => connection.command(frame), signal);
  }

  /** Stops following an ended exec; the supervisor keeps it, so that what it left running can still be killed. */
  release(id: string): void {
    this.#live.delete(id);
  }

  forget(id: string): void {
    this.#live.delete(id);
    this.#link.current?.send({ type: "forget", id });
  }

  /** All that a main exec said and how it ended is safe: its supervisor may end. Without word of it, it waits long. */
  letEnd(id: string): void {
    if (this.#link.current !== undefined) this.forget(id);
    else {
      const told = this.#link.connection().then((connection) => connection.send({ type: "forget", id }));
      told.catch(() => undefined);
    }
  }

  async list(signal?: AbortSignal): Promise<readonly ListedExec[]> {
    return this.#request((connection) => connection.list(), signal);
  }

  get isConnected(): boolean {
    return this.#link.current !== undefined;
  }

  /** Resolves when the supervisor has begun to end; the container's end is the driver's to tell. */
  async shutdown(graceMs: number, signal?: AbortSignal): Promise<void> {
    const connection = await this.#link.connection(signal);
    await orAborted(connection.command({ type: "shutdown", graceMs }), signal).catch((error: unknown) => {
      if (!connection.isClosed) throw error;
    });
  }

  /** Runs a builtin tool. Its failure rejects `done` with the AidoError that fits; leaving `stdout` early ends it. */
  tool(argv: readonly string[], options: ToolOptions = {}): ToolRun {
    return new ToolRun(this, argv, options);
  }

  /** The sandbox is stopped or removed: whatever was followed is lost. */
  drop(): void {
    this.#loseAll(new AidoError("CONTAINER_LOST", "The sandbox was stopped"));
    this.close();
  }

  /** Forgets every exec without telling their listeners: they run on, and others may follow them. */
  close(): void {
    this.#live.clear();
    this.#link.close();
  }

  #get(id: string): LiveExec | undefined {
    const exec = this.#live.get(id);
    if (exec !== undefined) return exec;
    throw refusalToError({
      type: "error",
      id,
      code: "NOT_FOUND",
      errno: 0,
      message: `exec ${id} does not run`,
    });
  }

  async #request<T>(ask: (connection: SupervisorConnection) => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = this.#link.current ?? (await this.#link.connection(signal));
      const full = connection.drained();
      if (full !== undefined) await orAborted(full, signal);
      try {
        return await orAborted(ask(connection), signal);
      } catch (error) {
        if (signal?.aborted || !connection.isClosed || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  #abandon(id: string): void {
    const connection = this.#link.current;
    if (connection === undefined) return;
    const kill = { type: "signal" as const, id, signal: 9, scope: SIGNAL_SCOPE.all, graceMs: 0 };
    connection
      .command(kill)
      .catch(() => undefined)
      .finally(() => connection.send({ type: "forget", id }));
  }

  #onConnected(connection: SupervisorConnection, isSameBoot: boolean): void {
    const started = [...this.#live.values()].filter((exec) => exec.isStarted && !exec.isEnded);
    for (const exec of started) {
      if (!isSameBoot) {
        this.#lose(exec, refusalToError(unknownExec(exec.id)));
        continue;
      }
      connection.send(exec.attachFrame());
      // Acknowledgements may have been lost with the former connection, and a full ring waits for them.
      for (const frame of exec.offsetFrames()) connection.send(frame);
      exec.stdin.resend();
    }
  }

  #onExecEvent(event: ExecEvent): void {
    const exec = this.#live.get(event.id);
    if (exec === undefined) return;
    switch (event.type) {
      case "started":
        exec.isStarted = true;
        break;
      case "output":
        exec.onOutput(event);
        break;
      case "stdinAck":
        exec.stdin.onAck(event.offset, event.closed);
        break;
      case "end":
        exec.onEnd(event);
        break;
      case "detached":
        this.#detach(exec);
        break;
      case "error":
        if (!exec.isStarted || !isFinal(event.code)) break;
        // Only what is recorded is let go, so another process took over while this one was not connected.
        if (event.code === "OFFSET_LOST" && !exec.isAttaching) this.#detach(exec);
        else this.#lose(exec, refusalToError(event));
        break;
    }
  }

  #detach(exec: LiveExec): void {
    this.#live.delete(exec.id);
    exec.stdin.end();
    exec.listener.onDetached();
  }

  #loseAll(error: AidoError): void {
    for (const exec of [...this.#live.values()]) if (exec.isStarted && !exec.isEnded) this.#lose(exec, error);
  }

  #lose(exec: LiveExec, error: AidoError): void {
    this.#live.delete(exec.id);
    exec.stdin.end();
    if (exec.isAttaching) exec.refusal = error;
    else exec.listener.onLost(error);
  }
}

/** Errors after which the exec cannot be followed from here; others answer a single request. */
function isFinal(code: string): boolean {
  return code === "NOT_FOUND" || code === "OFFSET_LOST";
}

function unknownExec(id: string) {
  return {
    type: "error",
    id,
    code: "NOT_FOUND",
    errno: 0,
    message: "the supervisor has started anew",
  } as const;
}

function toExecFrame(spec: ExecSpec): ExecFrame {
  const flags =
    (spec.stdin ? EXEC_FLAG.stdin : 0) |
    (spec.pty === undefined ? 0 : EXEC_FLAG.pty) |
    (spec.isTool ? EXEC_FLAG.builtin : 0) |
    (spec.user === undefined ? 0 : EXEC_FLAG.user) |
    (spec.isMain === true ? EXEC_FLAG.main : 0);
  return {
    type: "exec",
    id: spec.id,
    flags,
    uid: spec.user?.uid ?? 0,
    gid: spec.user?.gid ?? 0,
    cwd: spec.cwd,
    argv: spec.argv,
    env: spec.env,
    rows: spec.pty?.rows ?? 0,
    cols: spec.pty?.cols ?? 0,
    timeoutMs: spec.timeoutMs,
    graceMs: spec.graceMs,
    outputLimit: spec.outputLimit,
  };
}
