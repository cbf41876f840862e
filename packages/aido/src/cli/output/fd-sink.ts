import { write as writeCallback } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { ByteSink } from "./byte-sink.ts";

const write = promisify(writeCallback);

/**
 * A standard stream written in the thread pool. `process.stdout` writes to pipes on the main thread, where a
 * reader that pauses would also stop signals, timers and the supervisor's heartbeat.
 */
export class FdSink implements ByteSink {
  readonly #fd: number;
  readonly #terminal: () => number | undefined;
  #last: Promise<void> = Promise.resolve();

  /** `terminal` gives the current width when the descriptor is a terminal. */
  constructor(fd: number, terminal: () => number | undefined) {
    this.#fd = fd;
    this.#terminal = terminal;
  }

  get isTerminal(): boolean {
    return this.#terminal() !== undefined;
  }

  get columns(): number | undefined {
    return this.#terminal();
  }

  write(data: Uint8Array | string): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    const done = this.#last.then(() => this.#writeAll(bytes));
    // A failed write is reported to its own caller; the next one finds out by itself.
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < bytes.length) {
      try {
        const { bytesWritten } = await write(this.#fd, bytes, offset, bytes.length - offset);
        offset += bytesWritten;
      } catch (thrown) {
        // Another process that shares the descriptor may have made it non-blocking.
        if (!isWouldBlock(thrown)) throw thrown;
        await delay(5);
      }
    }
  }
}

function isWouldBlock(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "EAGAIN";
}
