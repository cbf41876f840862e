import type { Execs } from "@aido/sdk";
import { AidoError, type ExecInfo, type ExecRequest, type OutputChunk } from "@aido/sdk/protocol";
import { execInfo } from "./fake-backend.ts";

/** One command under a test's control: it writes what it is told and ends when it is told. */
export class FakeExec {
  readonly signals: string[] = [];
  readonly sizes: { rows: number; cols: number }[] = [];
  request: ExecRequest | undefined;
  stdin = "";
  stdinClosed = false;
  /** Called for each signal; by default it ends the command. */
  onSignal: (signal: string) => void = (signal) => this.end({ status: "killed", signal, exitCode: 143 });
  readonly #queue: OutputChunk[] = [];
  readonly #offset = { stdout: 0, stderr: 0 };
  readonly #started: Promise<void>;
  #markStarted: () => void = () => undefined;
  #end: Partial<ExecInfo> | undefined;
  #failure: unknown;
  #wake: () => void = () => undefined;

  constructor() {
    this.#started = new Promise((resolve) => {
      this.#markStarted = resolve;
    });
  }

  /** Settles when output is being read, that is when everything is set up. */
  get running(): Promise<void> {
    return this.#started;
  }

  write(stream: OutputChunk["stream"], data: string): this {
    const bytes = Buffer.from(data);
    this.#queue.push({ stream, offset: this.#offset[stream], data: bytes });
    this.#offset[stream] += bytes.length;
    this.#wake();
    return this;
  }

  end(info: Partial<ExecInfo> = {}): this {
    this.#end ??= info;
    this.#wake();
    return this;
  }

  fail(thrown: unknown): void {
    this.#failure = thrown;
    this.#wake();
  }

  get execs(): Partial<Execs> {
    return {
      start: (_sandbox, request) => {
        this.request = request;
        return Promise.resolve(execInfo({ status: "running", exitCode: undefined }));
      },
      output: () => this.#output(),
      wait: () => Promise.resolve(execInfo(this.#end)),
      writeStdin: (_sandbox, _id, data) => {
        if (this.#end) return Promise.reject(new AidoError("EXECUTION_CONFLICT", "The exec has ended"));
        this.stdin += Buffer.from(data).toString();
        return Promise.resolve();
      },
      closeStdin: () => {
        this.stdinClosed = true;
        this.#wake();
        return Promise.resolve();
      },
      resize: (_sandbox, _id, size) => {
        this.sizes.push(size);
        return Promise.resolve();
      },
      kill: (_sandbox, _id, options) => {
        this.signals.push(options?.signal ?? "SIGTERM");
        this.onSignal(options?.signal ?? "SIGTERM");
        return Promise.resolve();
      },
    };
  }

  async *#output(): AsyncGenerator<OutputChunk> {
    this.#markStarted();
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const next = this.#queue.shift();
      if (next) yield next;
      else if (this.#end) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
