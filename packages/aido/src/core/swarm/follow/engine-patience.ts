import { isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../clock.ts";

/** An engine that is restarted comes back; one that does not is not waited for all day. */
const WAIT_MS = 600_000;
const RETRY_MS = 2000;

/** Repeats what an engine does not answer, for a while. It says nothing about the worker that was asked for. */
export class EnginePatience {
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #lostAt: number | undefined;

  constructor(clock: Clock, warn: (message: string) => void) {
    this.#clock = clock;
    this.#warn = warn;
  }

  answered(): void {
    this.#lostAt = undefined;
  }

  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        if (signal.aborted || !isAidoError(thrown, "RUNTIME_UNAVAILABLE")) throw thrown;
        const now = this.#clock.now().getTime();
        if (this.#lostAt === undefined) {
          this.#lostAt = now;
          this.#warn(`${thrown.message}; trying again`);
        } else if (now - this.#lostAt >= WAIT_MS) throw thrown;
        await this.#clock.sleep(RETRY_MS, signal);
      }
    }
  }
}
