/** One chunk at a time from whoever writes to whoever reads; the writer waits until the chunk is taken. */
export class StdinFeed implements AsyncIterable<Uint8Array> {
  #chunk: Uint8Array | undefined;
  #taken: () => void = () => undefined;
  #wake: () => void = () => undefined;
  #isEnded = false;
  #isLeft = false;

  /** Resolves when the reader asks for more, or wants nothing any longer. One call at a time. */
  give(chunk: Uint8Array): Promise<void> {
    if (this.#isLeft) return Promise.resolve();
    return new Promise((resolve) => {
      this.#chunk = chunk;
      this.#taken = resolve;
      this.#wake();
    });
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        if (this.#chunk !== undefined) {
          const chunk = this.#chunk;
          this.#chunk = undefined;
          yield chunk;
          this.#taken();
        } else if (this.#isEnded) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      this.#isLeft = true;
      this.#taken();
    }
  }
}
