import type { Clock } from "../../src/core/clock.ts";

interface Sleeper {
  at: number;
  resolve: () => void;
}

/** Time that passes only when a test says so. */
export class HandClock implements Clock {
  #now = new Date("2026-01-01T00:00:00Z").getTime();
  #sleepers: Sleeper[] = [];
  #setByMs = 0;

  now(): Date {
    return new Date(this.#now);
  }

  /** Milliseconds that passed, whatever the time was set to. */
  passedMs(): number {
    return this.#now - this.#setByMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal?.reason as Error);
      };
      const sleeper = {
        at: this.#now + ms,
        resolve: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** As when somebody sets the machine's clock: nobody who sleeps wakes up. */
  set(now: Date): void {
    const change = now.getTime() - this.#now;
    this.#now = now.getTime();
    this.#setByMs += change;
    for (const sleeper of this.#sleepers) sleeper.at += change;
  }

  /** Lets time pass in steps, so that what wakes up may go to sleep again within it. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = this.#sleepers.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#now = Math.max(this.#now, next.at);
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      next.resolve();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets everything that is ready to run do so: promises and in-memory streams. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
