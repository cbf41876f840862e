import { randomBytes } from "node:crypto";
import { AidoError, type OutputStream } from "@aido/sdk/protocol";
import type { EndFrame } from "./frames.ts";
import type { ExecListener } from "./live-exec.ts";
import type { Supervisor } from "./supervisor.ts";
import { toolError } from "./tool-error.ts";

const STDERR_KEPT_BYTES = 4_096;
/** Taking one of them is a sign; a whole file may take long. */
const PIECE_BYTES = 1_048_576;
const ACK_EVERY_BYTES = 65_536;
const SIGTERM = 15;
const GRACE_MS = 1_000;
/**
 * How long a tool may leave whoever waits for it without a sign. Code in the sandbox can stop its processes at any time;
 * on the other hand, removing or measuring a large tree says nothing until it is done.
 */
const SILENT_MS = 120_000;

export interface ToolOptions {
  stdin?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Undefined means the sandbox's own user. */
  user?: { uid: number; gid: number } | undefined;
  signal?: AbortSignal | undefined;
  /** For what must be found again by others; random when absent. */
  id?: string | undefined;
  /** Once it has said anything it may be silent for as long as it likes. */
  isLasting?: boolean | undefined;
}

/**
 * One run of a builtin tool. Output is acknowledged as it is taken, so a slow reader holds the tool up, not memory. A tool
 * that gives no sign for long, while it is its turn and not the reader's or the input's, is ended with DEADLINE_EXCEEDED.
 */
export class ToolRun implements ExecListener {
  /** May be iterated once. Ends with the tool, also when it failed: `done` tells. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** Rejects with the AidoError that fits. */
  readonly done: Promise<void>;
  readonly #supervisor: Supervisor;
  readonly #argv: readonly string[];
  readonly #options: ToolOptions;
  readonly #id: string;
  readonly #chunks: { end: number; data: Buffer }[] = [];
  readonly #stopped = new AbortController();
  #stderr = "";
  #ackedAt = 0;
  #isOver = false;
  #isStarted = false;
  #hasSpoken = false;
  #silence: NodeJS.Timeout | undefined;
  /** Whoever reads is at a chunk, or whoever gives input has none yet: the tool waits for us. */
  #isReaderAtWork = false;
  #isInputAwaited = false;
  #wake: (() => void) | undefined;
  #resolve: () => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(supervisor: Supervisor, argv: readonly string[], options: ToolOptions) {
    this.#supervisor = supervisor;
    this.#argv = argv;
    this.#options = options;
    this.#id = options.id ?? `tool-${randomBytes(9).toString("base64url")}`;
    this.stdout = this.#read();
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever reads `stdout` to its end asks for `done` afterwards.
    this.done.catch(() => undefined);
    void this.#run();
  }

  onOutput(stream: OutputStream, offset: number, data: Buffer): void {
    this.#hasSpoken = true;
    if (this.#options.isLasting === true) this.#listenNoMore();
    this.#silence?.refresh();
    if (stream === "stderr") {
      if (this.#stderr.length < STDERR_KEPT_BYTES) this.#stderr += data.toString("utf8");
      this.#supervisor.ack(this.#id, "stderr", offset + data.length);
      return;
    }
    this.#chunks.push({ end: offset + data.length, data });
    this.#wake?.();
  }

  onEnd(end: EndFrame): void {
    if (end.how === 1 && end.code === 0) this.#over();
    else if (end.how === 1) this.#over(toolError(this.#argv, this.#stderr));
    else this.#over(this.#killed(end.code));
    this.#supervisor.forget(this.#id);
  }

  onDetached(): void {
    this.#over(
      new AidoError("CONTAINER_LOST", `Another process took over the sandbox's ${this.#argv[0]} tool`),
    );
  }

  onLost(error: AidoError): void {
    this.#over(error);
  }

  async #run(): Promise<void> {
    const { signal, stdin, user } = this.#options;
    const onAbort = () => this.#stop(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      signal?.throwIfAborted();
      const spec = {
        id: this.#id,
        argv: this.#argv,
        env: [],
        cwd: "",
        user,
        stdin: stdin !== undefined,
        pty: undefined,
        timeoutMs: 0,
        graceMs: GRACE_MS,
        outputLimit: 0,
        isTool: true,
      };
      await this.#supervisor.startExec(spec, this, signal);
      this.#isStarted = true;
      if (this.#isOver) this.#kill();
      else this.#listen();
      if (stdin !== undefined) await this.#feed(stdin);
      await this.done;
    } catch (error) {
      this.#stop(error);
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async #feed(stdin: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const chunks = stdin instanceof Uint8Array ? pieces(stdin) : stdin;
    this.#isInputAwaited = true;
    for await (const chunk of chunks) {
      this.#isInputAwaited = false;
      this.#silence?.refresh();
      const isTaken = await this.#give(() =>
        this.#supervisor.passStdin(this.#id, chunk, this.#stopped.signal),
      );
      if (!isTaken) return;
      this.#isInputAwaited = true;
    }
    this.#isInputAwaited = false;
    this.#silence?.refresh();
    await this.#give(() => this.#supervisor.closeStdin(this.#id, this.#stopped.signal));
  }

  /** False when the tool no longer reads: its own end says why, and says it better. */
  async #give(write: () => Promise<void>): Promise<boolean> {
    if (this.#isOver) return false;
    try {
      await write();
      return true;
    } catch {
      return false;
    }
  }

  async *#read(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#isReaderAtWork = true;
          yield chunk.data;
          this.#isReaderAtWork = false;
          this.#silence?.refresh();
          this.#taken(chunk.end);
        } else if (this.#isOver) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      if (!this.#isOver) this.#stop(new AidoError("CANCELLED", "The reader went away"));
    }
  }

  #taken(end: number): void {
    if (end - this.#ackedAt < ACK_EVERY_BYTES) return;
    this.#ackedAt = end;
    this.#supervisor.ack(this.#id, "stdout", end);
  }

  #listen(): void {
    if (this.#options.isLasting === true && this.#hasSpoken) return;
    const onSilence = () => {
      if (this.#chunks.length > 0 || this.#isReaderAtWork || this.#isInputAwaited) this.#silence?.refresh();
      else this.#stop(this.#silent());
    };
    this.#silence = setTimeout(onSilence, SILENT_MS).unref();
  }

  #listenNoMore(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }

  /** Ends the tool from our side; what it was writing is not put in place. */
  #stop(reason: unknown): void {
    if (this.#isOver) return;
    this.#over(reason);
    if (this.#isStarted) this.#kill();
  }

  #kill(): void {
    this.#supervisor
      .kill(this.#id, { signal: SIGTERM, scope: "all", graceMs: GRACE_MS })
      .catch(() => undefined)
      .finally(() => this.#supervisor.forget(this.#id));
  }

  #over(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listenNoMore();
    this.#stopped.abort(error);
    if (error === undefined) this.#resolve();
    else this.#reject(error);
    this.#wake?.();
  }

  #silent(): AidoError {
    const what = `The sandbox's ${this.#argv[0]} tool has given no sign for ${SILENT_MS / 1000} s`;
    return new AidoError("DEADLINE_EXCEEDED", what, {
      hint: "Something in the sandbox may have stopped it, or its disk is very slow.",
    });
  }

  #killed(signal: number): AidoError {
    return new AidoError(
      "FILE_DOWNLOAD_FAILED",
      `The sandbox's ${this.#argv[0]} tool was killed (signal ${signal})`,
      {
        hint: "The sandbox may be out of memory.",
      },
    );
  }
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
