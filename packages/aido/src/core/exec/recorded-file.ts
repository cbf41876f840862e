import { close, openSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { AidoError } from "@aido/sdk/protocol";

const CHUNK_BYTES = 65_536;
/** What fits is read at once: it was written a moment ago, and a thread's round trip would cost more than it does. */
const DIRECT_BYTES = 16_384;

const readAt = promisify(read) as (
  fd: number,
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
) => Promise<{ bytesRead: number }>;

/** One stream's recorded bytes, for reading; opened when first read. */
export class RecordedFile {
  readonly #path: string;
  #fd: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** At least one and at most `available` bytes. Raises OUTPUT_LOST when they are gone. */
  read(position: number, available: number): Buffer | Promise<Buffer> {
    try {
      this.#fd ??= openSync(this.#path, "r");
      if (available > DIRECT_BYTES) return this.#readLater(this.#fd, position, available);
      const buffer = Buffer.allocUnsafe(available);
      return filled(buffer, readSync(this.#fd, buffer, 0, available, position));
    } catch (error) {
      throw outputLost(error);
    }
  }

  close(): void {
    if (this.#fd !== undefined) close(this.#fd);
    this.#fd = undefined;
  }

  async #readLater(fd: number, position: number, available: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.min(available, CHUNK_BYTES));
    const { bytesRead } = await readAt(fd, buffer, 0, buffer.length, position);
    return filled(buffer, bytesRead);
  }
}

function filled(buffer: Buffer, bytes: number): Buffer {
  if (bytes === 0) throw outputLost(new Error("the recorded file is shorter than it was"));
  return buffer.subarray(0, bytes);
}

function outputLost(cause: unknown): AidoError {
  return new AidoError("OUTPUT_LOST", "The recorded output is no longer there", {
    hint: "Was the sandbox destroyed meanwhile?",
    cause,
  });
}
