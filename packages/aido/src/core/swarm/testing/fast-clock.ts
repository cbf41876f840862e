import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../clock.ts";

/** Time that runs faster than the machine's, beside work that takes real time. */
export class FastClock implements Clock {
  readonly #factor: number;
  readonly #start = performance.now();

  constructor(factor = 200) {
    this.#factor = factor;
  }

  now(): Date {
    return new Date(Date.UTC(2026, 0, 5) + (performance.now() - this.#start) * this.#factor);
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await sleep(ms / this.#factor, undefined, signal === undefined ? {} : { signal });
  }
}
