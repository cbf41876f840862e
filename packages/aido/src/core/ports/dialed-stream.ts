import { Duplex } from "node:stream";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { ToolRun } from "../supervisor/tool-run.ts";
import { StdinFeed } from "./stdin-feed.ts";

/** What the dial tool says first, before any byte of the other side. */
const CONNECTED = 1;

/** A connection to a port inside a sandbox. Slow readers and writers on either side hold up the other, not memory. */
export class DialedStream extends Duplex {
  readonly #run: ToolRun;
  readonly #feed = new StdinFeed();
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #ending = new AbortController();
  #isReading = false;

  constructor(supervisor: Supervisor, port: number) {
    // The tool ends when the other side does, so nothing can be written after the last byte was read.
    super({ allowHalfOpen: false });
    const options = { stdin: this.#feed, signal: this.#ending.signal, isLasting: true };
    this.#run = supervisor.tool(["dial", String(port)], options);
    this.#chunks = this.#run.stdout[Symbol.asyncIterator]();
  }

  /** Rejects with the tool's own error when nothing answers on the port. */
  async connected(): Promise<void> {
    const first = await this.#chunks.next();
    if (first.done === true) await this.#run.done;
    if (first.done === true || first.value[0] !== CONNECTED) throw new Error("The connection ended at once");
    if (first.value.length > 1) this.push(first.value.subarray(1));
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#chunks.next().then(
      ({ done, value }) => {
        this.#isReading = false;
        this.push(done === true ? null : value);
      },
      (error: Error) => this.destroy(error),
    );
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    // A tool that no longer reads has ended; that is told to the reader, with what was said before.
    void this.#feed.give(chunk).then(callback);
  }

  override _writev(chunks: { chunk: Buffer }[], callback: () => void): void {
    void this.#feed.give(Buffer.concat(chunks.map(({ chunk }) => chunk))).then(callback);
  }

  override _final(callback: () => void): void {
    this.#feed.end();
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#feed.end();
    this.#ending.abort(error ?? new Error("The connection was closed"));
    callback(error);
  }
}
