import { MAX_MESSAGE_BYTES } from "../../../core/swarm/messages/message.ts";

const NEWLINE = 0x0a;

/** Lines out of bytes that come in pieces. Of a line that is longer than any message the rest is left out. */
export class LineSplitter {
  readonly #line = Buffer.alloc(MAX_MESSAGE_BYTES + 1);
  #length = 0;

  push(bytes: Uint8Array): string[] {
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const lines: string[] = [];
    for (let start = 0; ; ) {
      const newline = data.indexOf(NEWLINE, start);
      const part = data.subarray(start, newline < 0 ? undefined : newline);
      this.#length += part.copy(this.#line, this.#length);
      if (newline < 0) return lines;
      lines.push(...this.end());
      start = newline + 1;
    }
  }

  /** What is left of a line that was not ended. */
  end(): string[] {
    const text = this.#line.toString("utf8", 0, this.#length).trimEnd();
    this.#length = 0;
    return text === "" ? [] : [text];
  }
}
