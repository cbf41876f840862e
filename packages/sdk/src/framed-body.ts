import { AidoError } from "./protocol/errors.ts";
import type { RunFile } from "./runs.ts";

/**
 * A request and the files that belong to it in one streamed body. It is a row of frames: a length of four bytes, the
 * highest first, and that many bytes. The first frame is JSON and lists the files; the frames of each file follow in
 * that order, and an empty frame ends it. A body that breaks off anywhere is not complete.
 */
export const FRAMED_BODY = "application/vnd.aido.framed";
const MAX_FRAME_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;

export async function* writeFramedBody(
  request: unknown,
  files: readonly RunFile[],
): AsyncGenerator<Uint8Array> {
  yield frame(new TextEncoder().encode(JSON.stringify(request)));
  for (const file of files) {
    for await (const chunk of file.content()) {
      for (let at = 0; at < chunk.length; at += MAX_FRAME_BYTES)
        yield frame(chunk.subarray(at, at + MAX_FRAME_BYTES));
    }
    yield frame(new Uint8Array(0));
  }
}

function frame(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(LENGTH_BYTES + bytes.length);
  new DataView(whole.buffer).setUint32(0, bytes.length);
  whole.set(bytes, LENGTH_BYTES);
  return whole;
}

/** Reads what `writeFramedBody` wrote, never more than one frame ahead. */
export class FramedBody {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async request(maxBytes: number): Promise<unknown> {
    const bytes = await this.#frame(maxBytes);
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch (cause) {
      throw new AidoError("VALIDATION_ERROR", "The first frame of the body is not JSON", { cause });
    }
  }

  /** The next file. Files are read whole and in their order. */
  async *file(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = await this.#frame(MAX_FRAME_BYTES);
      if (bytes.length === 0) return;
      yield bytes;
    }
  }

  async #frame(maxBytes: number): Promise<Uint8Array> {
    const head = await this.#take(LENGTH_BYTES);
    const length = new DataView(head.buffer, head.byteOffset).getUint32(0);
    if (length > maxBytes) {
      throw new AidoError("PAYLOAD_TOO_LARGE", `A frame of the body is larger than ${maxBytes} bytes`);
    }
    return this.#take(length);
  }

  async #take(length: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#source.next();
        if (done === true) throw new AidoError("VALIDATION_ERROR", "The body ends before it is complete");
        this.#rest = value;
        continue;
      }
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      parts.push(part);
      missing -= part.length;
    }
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return only;
    const whole = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}
