import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../clock.ts";

/** What is longer between two looks is the machine's doing: it was busy with others. */
const LONGEST_MS = 20;

/** Time that runs faster than the machine's, beside work that takes real time. It waits when this process does not get to run. */
export class FastClock implements Clock {
  readonly #factor: number;
  #now = Date.UTC(2026, 0, 5);
  #seenAt = performance.now();

  constructor(factor = 200) {
    this.#factor = factor;
  }

  now(): Date {
    const at = performance.now();
    this.#now += Math.min(at - this.#seenAt, LONGEST_MS) * this.#factor;
    this.#seenAt = at;
    return new Date(this.#now);
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const end = this.now().getTime() + ms;
    await sleep(ms / this.#factor, undefined, signal === undefined ? {} : { signal });
    this.#now = Math.max(this.now().getTime(), end);
  }
}
