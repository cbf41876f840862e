import type { Clock } from "../clock.ts";

/** Time that both clocks may drift apart between two looks without anybody calling it a jump. */
const TOLERANCE_MS = 60_000;

/**
 * Notices that the machine's clock was set, or that the machine slept: the time of day has moved by more or less
 * than the time that passed.
 */
export class ClockJumps {
  readonly #clock: Clock;
  readonly #passedMs: () => number;
  #last: { wallMs: number; passedMs: number } | undefined;

  constructor(clock: Clock, passedMs: () => number) {
    this.#clock = clock;
    this.#passedMs = passedMs;
  }

  /** Since the look before this one. */
  hasJumped(): boolean {
    const now = { wallMs: this.#clock.now().getTime(), passedMs: this.#passedMs() };
    const last = this.#last ?? now;
    this.#last = now;
    return Math.abs(now.wallMs - last.wallMs - (now.passedMs - last.passedMs)) > TOLERANCE_MS;
  }
}
