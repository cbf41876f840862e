import type { Clock } from "./clock.ts";

/** Time that both clocks may drift apart between two looks without anybody calling it a jump. */
const TOLERANCE_MS = 60_000;

/** For so long after a jump nothing is removed because of its age: whoever set the clock wrong can set it right. */
export const DOUBT_MS = 60 * 60_000;

/**
 * Notices that the machine's clock was set, or that the machine slept: the time of day has moved by more or less
 * than the time that passed.
 */
export class ClockJumps {
  readonly #clock: Clock;
  readonly #passedMs: () => number;
  #seen: { wallMs: number; passedMs: number };
  #last: number | undefined;

  /** `passedMs`: milliseconds that pass whatever the time of day does. */
  constructor(clock: Clock, passedMs: () => number = () => performance.now()) {
    this.#clock = clock;
    this.#passedMs = passedMs;
    this.#seen = this.#look();
  }

  /** When the last one was noticed, in milliseconds that passed; whoever asks looks. */
  last(): number | undefined {
    const now = this.#look();
    const { wallMs, passedMs } = this.#seen;
    this.#seen = now;
    if (Math.abs(now.wallMs - wallMs - (now.passedMs - passedMs)) > TOLERANCE_MS) this.#last = now.passedMs;
    return this.#last;
  }

  /** Whether one was noticed at most so long ago. */
  within(ms: number): boolean {
    const last = this.last();
    return last !== undefined && this.#passedMs() - last < ms;
  }

  #look() {
    return { wallMs: this.#clock.now().getTime(), passedMs: this.#passedMs() };
  }
}
