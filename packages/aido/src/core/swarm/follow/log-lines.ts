import type { Clock } from "../../clock.ts";

const NEWLINE = 0x0a;
/** Of a line; what is behind it is left out. */
const MOST_BYTES = 2000;
const PER_SECOND = 50;

/** Lines of a log out of its bytes: long ones cut, and of a flood only so many a second, so that nobody drowns in it. */
export class LogLines {
  readonly #clock: Clock;
  readonly #line = Buffer.alloc(MOST_BYTES);
  #length = 0;
  #second = 0;
  #taken = 0;
  #leftOut = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(bytes: Uint8Array): string[] {
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const lines: string[] = [];
    let start = 0;
    for (;;) {
      const newline = data.indexOf(NEWLINE, start);
      const part = data.subarray(start, newline < 0 ? undefined : newline);
      this.#length += part.subarray(0, MOST_BYTES - this.#length).copy(this.#line, this.#length);
      if (newline < 0) return lines;
      this.#take(lines);
      start = newline + 1;
    }
  }

  /** What is left when nothing comes any more. */
  end(): string[] {
    const lines: string[] = [];
    this.#take(lines);
    this.#tellLeftOut(lines);
    return lines;
  }

  #take(lines: string[]): void {
    const text = this.#line.toString("utf8", 0, this.#length).trimEnd();
    this.#length = 0;
    if (text === "") return;
    const second = Math.floor(this.#clock.now().getTime() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#taken = 0;
      this.#tellLeftOut(lines);
    }
    if (this.#taken >= PER_SECOND) this.#leftOut += 1;
    else {
      this.#taken += 1;
      lines.push(text);
    }
  }

  #tellLeftOut(lines: string[]): void {
    if (this.#leftOut > 0) lines.push(`(${this.#leftOut} lines left out)`);
    this.#leftOut = 0;
  }
}
