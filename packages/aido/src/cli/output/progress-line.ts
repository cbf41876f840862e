import type { ByteSink } from "./byte-sink.ts";
import { printable } from "./printable.ts";
import { truncate } from "./text-width.ts";

export type ProgressMode = "quiet" | "redraw" | "lines";

/** Slow steps as they happen: one line drawn again and again on a terminal, plain lines elsewhere when asked for. */
export class ProgressLine {
  readonly #sink: ByteSink;
  readonly #mode: ProgressMode;
  #drawn = false;
  #last = "";

  constructor(sink: ByteSink, mode: ProgressMode) {
    this.#sink = sink;
    this.#mode = mode;
  }

  /** Never waits: a reader of stderr that is slow must not slow the work down. */
  readonly show = (step: string): void => {
    const text = printable(step);
    if (this.#mode === "quiet" || text === this.#last) return;
    this.#last = text;
    this.#drawn = this.#mode === "redraw";
    this.#write(this.#drawn ? `\r\u001b[K${truncate(text, (this.#sink.columns ?? 80) - 1)}` : `${text}\n`);
  };

  /** Takes the line away, so that what follows starts on a clean one. */
  readonly clear = (): void => {
    if (!this.#drawn) return;
    this.#drawn = false;
    this.#last = "";
    this.#write("\r\u001b[K");
  };

  #write(text: string): void {
    // Progress is worth nothing once nobody reads it.
    this.#sink.write(text).catch(() => undefined);
  }
}
