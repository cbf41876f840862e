import type { Execs } from "../aido.ts";
import { type ExecInfo, isAidoError, type OutputChunk, type TerminalSize } from "../protocol/index.ts";

/** A command that runs: read it, write to it, wait for it, end it. Losing the connection does not end it. */
export class RunningCommand implements AsyncIterable<OutputChunk> {
  readonly id: string;
  readonly #sandbox: string;
  readonly #execs: Execs;

  constructor(sandbox: string, id: string, execs: Execs) {
    this.id = id;
    this.#sandbox = sandbox;
    this.#execs = execs;
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputChunk> {
    return this.#execs.output(this.#sandbox, this.id, { follow: true })[Symbol.asyncIterator]();
  }

  wait(signal?: AbortSignal): Promise<ExecInfo> {
    return this.#execs.wait(this.#sandbox, this.id, signal);
  }

  write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    return this.#execs.writeStdin(this.#sandbox, this.id, bytes);
  }

  /** No error when the command has ended meanwhile: its input is closed then. */
  async closeStdin(): Promise<void> {
    try {
      await this.#execs.closeStdin(this.#sandbox, this.id);
    } catch (thrown) {
      if (!isAidoError(thrown, "EXECUTION_CONFLICT")) throw thrown;
    }
  }

  resize(size: TerminalSize): Promise<void> {
    return this.#execs.resize(this.#sandbox, this.id, size);
  }

  kill(options: { signal?: string; graceMs?: number } = {}): Promise<void> {
    return this.#execs.kill(this.#sandbox, this.id, options);
  }
}
