import { RING_BYTES } from "../../core/supervisor/protocol.ts";

/** Output that is not yet acknowledged. A full ring makes the writer wait. */
export class FakeRing {
  base = 0;
  /** What the attached connection has been sent. */
  sent = 0;
  #held = Buffer.alloc(0);
  #waiting: (() => void)[] = [];

  get total(): number {
    return this.base + this.#held.length;
  }

  /** Resolves when there is room, or when the process is killed. */
  async space(killed: AbortSignal): Promise<void> {
    while (this.#held.length >= RING_BYTES && !killed.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          killed.removeEventListener("abort", wake);
          resolve();
        };
        this.#waiting.push(wake);
        killed.addEventListener("abort", wake, { once: true });
      });
    }
  }

  /** Takes what fits and says how much. */
  put(data: Buffer): number {
    const taken = Math.min(data.length, RING_BYTES - this.#held.length);
    this.#held = Buffer.concat([this.#held, data.subarray(0, taken)]);
    return taken;
  }

  next(): { offset: number; data: Buffer } | undefined {
    if (this.sent >= this.total) return undefined;
    const offset = this.sent;
    const data = this.#held.subarray(offset - this.base, offset - this.base + 65_536);
    this.sent += data.length;
    return { offset, data };
  }

  /** False when the offset lies beyond what was written. */
  ack(offset: number): boolean {
    if (offset > this.total) return false;
    if (offset <= this.base) return true;
    this.#held = this.#held.subarray(offset - this.base);
    this.base = offset;
    for (const wake of this.#waiting.splice(0)) wake();
    return true;
  }
}
