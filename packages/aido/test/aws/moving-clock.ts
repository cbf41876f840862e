import type { Clock } from "../../src/core/clock.ts";

interface Sleeper {
  at: number;
  wake: () => void;
}

/** Real time that a test can also make jump ahead; whoever sleeps wakes when the time has come in either way. */
export class MovingClock implements Clock {
  readonly #sleepers = new Set<Sleeper>();
  #ahead = 0;

  now(): Date {
    return new Date(Date.now() + this.#ahead);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      const onAbort = () => end(() => reject(signal?.reason as Error));
      const sleeper = { at: this.now().getTime() + ms, wake: () => end(resolve) };
      const timer = setTimeout(sleeper.wake, ms);
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  jump(ms: number): void {
    this.#ahead += ms;
    const now = this.now().getTime();
    for (const sleeper of [...this.#sleepers]) if (sleeper.at <= now) sleeper.wake();
  }
}
