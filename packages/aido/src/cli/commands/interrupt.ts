import type { CliContext, SignalName } from "../context.ts";
import { note } from "../output/print.ts";
import { forwardSignals } from "./forward-signals.ts";

const EXIT_CODES = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGQUIT: 131,
  SIGWINCH: 156,
  SIGTSTP: 148,
  SIGCONT: 146,
} as const;

/** The first signal ends the work in order; what that means depends on how far the work has come. */
export class Interrupt {
  hit: SignalName | undefined;
  readonly #abort = new AbortController();
  readonly #stop: () => void;
  #end: (() => void) | undefined;

  constructor(context: CliContext) {
    this.#stop = forwardSignals(context.signals, (signal) => {
      this.hit = signal;
      if (this.#end === undefined) this.#abort.abort();
      else this.#end();
    });
  }

  /** Aborted by a signal that comes before `onHit`. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get exitCode(): number | undefined {
    return this.hit === undefined ? undefined : EXIT_CODES[this.hit];
  }

  /** From now on a signal cancels; one that came before does so at once. The promise settles when one comes. */
  onHit(cancel: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.#end = () => {
        // The wait for the end of the work reports whatever is wrong.
        void cancel().catch(() => undefined);
        resolve();
      };
      if (this.hit !== undefined) this.#end();
    });
  }

  stop(): void {
    this.#stop();
  }
}

/**
 * Work that a signal takes back: what was half made is removed by whoever made it. From `release` on signals are for somebody
 * else to handle, and whatever is raised is no interruption.
 */
export async function interruptible(
  context: CliContext,
  work: (signal: AbortSignal, release: () => void) => Promise<number>,
): Promise<number> {
  const interrupt = new Interrupt(context);
  let isReleased = false;
  const release = () => {
    isReleased = true;
    interrupt.stop();
  };
  try {
    return await work(interrupt.signal, release);
  } catch (thrown) {
    if (isReleased || interrupt.exitCode === undefined) throw thrown;
    context.progress.clear();
    await note(context, "aido: interrupted");
    return interrupt.exitCode;
  } finally {
    context.progress.clear();
    interrupt.stop();
  }
}
