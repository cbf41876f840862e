import { STDIN_WINDOW_BYTES } from "../../core/supervisor/protocol.ts";

/** Standard input of a fake process: holds what the program has not read yet, acknowledges what it has. */
export class FakeStdin implements AsyncIterable<Buffer> {
  readonly #ack: (offset: number, closed: boolean) => void;
  readonly #chunks: Buffer[] = [];
  #held = 0;
  #taken = 0;
  #closeAt: number | undefined;
  #ended: boolean;
  #wake: (() => void) | undefined;

  constructor(isWanted: boolean, ack: (offset: number, closed: boolean) => void) {
    this.#ended = !isWanted;
    this.#ack = ack;
  }

  /** False when the host sent more than the window allows. */
  push(offset: number, data: Buffer): boolean {
    const fresh = data.subarray(Math.max(0, this.#taken + this.#held - offset));
    if (offset > this.#taken + this.#held) return false;
    if (this.#ended || fresh.length === 0) {
      this.#ack(this.#taken, this.#ended);
      return true;
    }
    if (this.#held + fresh.length > STDIN_WINDOW_BYTES) return false;
    this.#chunks.push(Buffer.from(fresh));
    this.#held += fresh.length;
    this.#wake?.();
    return true;
  }

  close(offset: number): void {
    this.#closeAt = offset;
    this.#endWhenRead();
    this.#wake?.();
  }

  /** To a new connection, which cannot know how far the former one came. */
  tell(): void {
    if (!this.#ended) this.#ack(this.#taken, false);
  }

  /** The process is gone. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#ack(this.#taken, true);
    this.#wake?.();
  }

  #endWhenRead(): void {
    if (this.#closeAt !== undefined && this.#taken >= this.#closeAt) this.end();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#held -= chunk.length;
        this.#taken += chunk.length;
        this.#ack(this.#taken, false);
        this.#endWhenRead();
        yield chunk;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
