import { Duplex } from "node:stream";
import { AidoError } from "@aido/sdk/protocol";
import { clean } from "./translate-docker-error.ts";

const HEADER_BYTES = 8;
const STDOUT = 1;
const STDERR = 2;
const MAX_STDERR_BYTES = 4096;

/**
 * The standard streams of an engine exec as one byte stream. The engine sends both outputs on one connection, each
 * piece after a header of stream number and length; what comes on standard error is kept for the failure's message.
 */
export class ExecStream extends Duplex {
  readonly #raw: Duplex;
  #header = Buffer.alloc(0);
  #stream = STDOUT;
  #left = 0;
  #stderr = Buffer.alloc(0);
  #finished = false;

  constructor(raw: Duplex) {
    super({ allowHalfOpen: true });
    this.#raw = raw;
    raw.on("data", (chunk: Buffer) => this.#take(chunk));
    raw.on("end", () => this.#finish());
    raw.on("close", () => this.#finish());
    raw.on("error", (error) => this.destroy(error));
  }

  override _read(): void {
    this.#raw.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#raw.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#raw.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#raw.destroy();
    done(error);
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left === 0) {
        rest = this.#takeHeader(rest);
        continue;
      }
      const piece = rest.subarray(0, this.#left);
      rest = rest.subarray(piece.length);
      this.#left -= piece.length;
      if (this.#stream === STDERR) {
        this.#stderr = Buffer.concat([this.#stderr, piece]).subarray(0, MAX_STDERR_BYTES);
      } else if (!this.push(piece)) {
        this.#raw.pause();
      }
    }
  }

  /** Takes what is missing of the header and gives back the rest. */
  #takeHeader(chunk: Buffer): Buffer {
    const missing = HEADER_BYTES - this.#header.length;
    this.#header = Buffer.concat([this.#header, chunk.subarray(0, missing)]);
    if (this.#header.length === HEADER_BYTES) {
      this.#stream = this.#header.readUInt8(0);
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    return chunk.subarray(missing);
  }

  #finish(): void {
    if (this.#finished || this.destroyed) return;
    this.#finished = true;
    if (this.#stderr.length > 0) {
      const told = clean(this.#stderr.toString("utf8"));
      this.destroy(new AidoError("CONTAINER_LOST", `The sandbox's supervisor cannot be reached: ${told}`));
    } else {
      this.push(null);
    }
  }
}
