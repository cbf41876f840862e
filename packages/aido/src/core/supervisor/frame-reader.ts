import { protocolError } from "./frames.ts";
import { MAX_FRAME_BYTES } from "./protocol.ts";

/**
 * Cuts a byte stream into frames. Holds at most one unfinished frame: a body that lies within one chunk is handed
 * on as a view of it, only one that spans chunks is copied. After a bad length it takes nothing more.
 */
export class FrameReader {
  readonly #onFrame: (type: number, body: Buffer) => void;
  readonly #header = Buffer.alloc(4);
  #headerBytes = 0;
  #frame: Buffer | undefined;
  #frameBytes = 0;
  #broken = false;

  constructor(onFrame: (type: number, body: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** Raises CONTAINER_LOST on a length outside the protocol's bounds, and whatever `onFrame` raises. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#broken) throw protocolError("bytes came after a bad frame");
      if (this.#frame === undefined) at = this.#begin(chunk, at);
      else at = this.#continue(chunk, at);
    }
  }

  #begin(chunk: Buffer, at: number): number {
    const taken = Math.min(4 - this.#headerBytes, chunk.length - at);
    chunk.copy(this.#header, this.#headerBytes, at, at + taken);
    this.#headerBytes += taken;
    if (this.#headerBytes < 4) return at + taken;
    const length = this.#header.readUInt32LE(0);
    if (length < 1 || length > MAX_FRAME_BYTES) {
      this.#broken = true;
      throw protocolError(`a frame of ${length} bytes`);
    }
    const start = at + taken;
    this.#headerBytes = 0;
    if (chunk.length - start >= length) {
      this.#deliver(chunk.subarray(start, start + length));
      return start + length;
    }
    this.#frame = Buffer.allocUnsafe(length);
    this.#frameBytes = 0;
    return start;
  }

  #continue(chunk: Buffer, at: number): number {
    const frame = this.#frame;
    if (frame === undefined) return at;
    const taken = Math.min(frame.length - this.#frameBytes, chunk.length - at);
    chunk.copy(frame, this.#frameBytes, at, at + taken);
    this.#frameBytes += taken;
    if (this.#frameBytes === frame.length) {
      this.#frame = undefined;
      this.#deliver(frame);
    }
    return at + taken;
  }

  #deliver(frame: Buffer): void {
    try {
      this.#onFrame(frame.readUInt8(0), frame.subarray(1));
    } catch (error) {
      this.#broken = true;
      throw error;
    }
  }
}
