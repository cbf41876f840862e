import { MAX_MESSAGE_BYTES } from "./message.ts";
import { messageError } from "./message-error.ts";

const NEWLINE = 0x0a;

/** Lines out of chunks of any size. At most one line is kept in memory; blank ones are passed over. */
export class LineSplitter {
  readonly #buffer = Buffer.alloc(MAX_MESSAGE_BYTES);
  #length = 0;

  /** `end` is where the next line begins in the chunk. A line is good until the next one is asked for. */
  *push(chunk: Uint8Array): Generator<{ line: Uint8Array; end: number }> {
    let start = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, start);
      const part = chunk.subarray(start, newline < 0 ? undefined : newline);
      if (this.#length + part.length > MAX_MESSAGE_BYTES) {
        throw messageError("(line)", `has more than ${MAX_MESSAGE_BYTES} bytes`);
      }
      this.#buffer.set(part, this.#length);
      this.#length += part.length;
      if (newline < 0) return;
      const line = this.#buffer.subarray(0, this.#length);
      this.#length = 0;
      start = newline + 1;
      if (!isBlank(line)) yield { line, end: start };
    }
  }

  /** What was cut off in the middle is no message, even when it happens to be JSON. */
  end(): void {
    if (isBlank(this.#buffer.subarray(0, this.#length))) return;
    throw messageError("(line)", "is cut off before its newline", "ACP_CONNECTION_LOST");
  }
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
