import type { ByteSink } from "../byte-sink.ts";

/** What may wait for a reader, in characters. */
const MOST_CHATTER = 1 << 20;
const MOST = 16 << 20;

/**
 * Lines on their way to a reader that may be slow. Adding never waits, for a reader that pauses must not stop the swarm; so what
 * is only said is left out, and counted, while too much of it waits.
 */
export class LineQueue {
  readonly #sink: ByteSink;
  readonly #describeOmitted: (count: number) => string;
  #waiting: string[] = [];
  #length = 0;
  #omitted = 0;
  #isClosed = false;
  #flushing: Promise<void> | undefined;

  constructor(sink: ByteSink, describeOmitted: (count: number) => string) {
    this.#sink = sink;
    this.#describeOmitted = describeOmitted;
  }

  /** `isChatter`: it may be left out when the reader does not keep up. */
  add(line: string, isChatter: boolean): void {
    if (this.#isClosed) return;
    if (this.#length + line.length > (isChatter ? MOST_CHATTER : MOST)) {
      this.#omitted += 1;
      return;
    }
    this.#tellOmitted();
    this.#push(line);
  }

  /** Settles when the reader has taken everything, or is gone. */
  async close(): Promise<void> {
    this.#tellOmitted();
    await this.#flushing;
  }

  #tellOmitted(): void {
    if (this.#omitted === 0) return;
    this.#push(this.#describeOmitted(this.#omitted));
    this.#omitted = 0;
  }

  #push(line: string): void {
    this.#waiting.push(line);
    this.#length += line.length + 1;
    this.#flushing ??= this.#flush();
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      const length = this.#length;
      this.#waiting = [];
      try {
        await this.#sink.write(`${lines.join("\n")}\n`);
      } catch {
        // Nobody reads any more. The swarm goes on: its state file and its logs tell what this would have.
        this.#isClosed = true;
        this.#waiting = [];
        return;
      }
      this.#length -= length;
    }
    this.#flushing = undefined;
  }
}
