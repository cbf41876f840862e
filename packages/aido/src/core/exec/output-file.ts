import { createHash, type Hash } from "node:crypto";
import { close, createReadStream, constants as fs, mkdirSync, openSync, writeSync, writev } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

const writevAt = promisify(writev) as (
  fd: number,
  buffers: readonly Uint8Array[],
  position: number,
) => Promise<{ bytesWritten: number }>;

/** Writes up to this size go straight to the page cache: a thread's round trip would cost more than they do. */
const DIRECT_BYTES = 16_384;

/**
 * One stream's recorded bytes. Made at the first byte. Every write has an explicit position and none overtakes another,
 * so the file's size is always how far the recording got, and two recorders writing the same bytes do no harm.
 */
export class OutputFile {
  readonly #path: string;
  readonly #onWritten: () => void;
  readonly #onError: (error: Error) => void;
  readonly #hash: Hash | undefined;
  #fd: number | undefined;
  #written: number;
  #queue: Buffer[] = [];
  #writing: Promise<void> | undefined;
  #hasFailed = false;

  constructor(path: string, from: number, onWritten: () => void, onError: (error: Error) => void) {
    this.#path = path;
    this.#written = from;
    this.#onWritten = onWritten;
    this.#onError = onError;
    // A recording taken over midway is hashed from the file at the end.
    this.#hash = from === 0 ? createHash("sha256") : undefined;
  }

  get written(): number {
    return this.#written;
  }

  push(data: Buffer): void {
    if (this.#hasFailed) return;
    if (this.#writing === undefined && data.length <= DIRECT_BYTES) {
      this.#writeNow(data);
      return;
    }
    this.#queue.push(data);
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Undefined when nothing is on its way. */
  flushed(): Promise<void> | undefined {
    return this.#writing;
  }

  async sha256(): Promise<string> {
    if (this.#hash !== undefined) return this.#hash.copy().digest("hex");
    const hash = createHash("sha256");
    if (this.#written === 0) return hash.digest("hex");
    for await (const chunk of createReadStream(this.#path, { end: this.#written - 1 })) {
      hash.update(chunk as Buffer);
    }
    return hash.digest("hex");
  }

  close(): void {
    if (this.#fd !== undefined) close(this.#fd);
    this.#fd = undefined;
  }

  #writeNow(data: Buffer): void {
    try {
      const fd = this.#open();
      for (let at = 0; at < data.length; )
        at += writeSync(fd, data, at, data.length - at, this.#written + at);
      this.#advance([data]);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  async #drain(): Promise<void> {
    try {
      const fd = this.#open();
      while (this.#queue.length > 0) {
        const batch = this.#queue.splice(0);
        await writeAll(fd, batch, this.#written);
        this.#advance(batch);
      }
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #advance(batch: readonly Buffer[]): void {
    for (const data of batch) {
      this.#hash?.update(data);
      this.#written += data.length;
    }
    this.#onWritten();
  }

  #open(): number {
    if (this.#fd === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      this.#fd = openSync(this.#path, fs.O_WRONLY | fs.O_CREAT | fs.O_NOFOLLOW, 0o600);
    }
    return this.#fd;
  }

  #fail(error: Error): void {
    this.#hasFailed = true;
    this.#queue = [];
    this.#onError(error);
  }
}

async function writeAll(fd: number, batch: readonly Buffer[], position: number): Promise<void> {
  const size = batch.reduce((total, data) => total + data.length, 0);
  let { bytesWritten } = await writevAt(fd, batch, position);
  if (bytesWritten === size) return;
  const whole = Buffer.concat(batch);
  while (bytesWritten < size) {
    const rest = await writevAt(fd, [whole.subarray(bytesWritten)], position + bytesWritten);
    bytesWritten += rest.bytesWritten;
  }
}
