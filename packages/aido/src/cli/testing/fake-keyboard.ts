import type { Keyboard } from "../context.ts";

/** Typed input under a test's control. It stays open until `end` or `stop`, as a terminal does. */
export class FakeKeyboard implements Keyboard {
  readonly isTerminal: boolean;
  /** Every change of mode, in order. */
  readonly modes: boolean[] = [];
  readonly #queue: Uint8Array[] = [];
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(options: { terminal?: boolean } = {}) {
    this.isTerminal = options.terminal ?? false;
  }

  type(text: string): this {
    this.#queue.push(Buffer.from(text));
    this.#wake();
    return this;
  }

  end(): this {
    this.#ended = true;
    this.#wake();
    return this;
  }

  stop(): void {
    this.end();
  }

  setRawMode(raw: boolean): void {
    this.modes.push(raw);
  }

  async *chunks(): AsyncIterable<Uint8Array> {
    for (;;) {
      const next = this.#queue.shift();
      if (next) yield next;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
