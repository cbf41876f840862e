import type { CoreAido } from "../core/core-aido.ts";
import type { Logger } from "../core/logger.ts";

export interface HousekeepingDeps {
  aido: CoreAido;
  logger: Logger;
  forgetAnswers: (now: Date) => Promise<void>;
}

const EXPIRE_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 60_000;

/**
 * What a server does besides answering: takes over what a former process left running, notices ends, removes what has
 * expired. Each look costs what is due, not what exists.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  #watch: Promise<void> | undefined;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  /** Resolves when everything a former process left has been looked at. */
  async start(): Promise<void> {
    const { aido } = this.#deps;
    await aido.sandboxes.reconcile();
    for (const sandbox of await aido.sandboxes.list({ states: ["running"] })) {
      await this.#quietly("execs.recover", () => aido.recover(sandbox.id));
    }
    await this.#quietly("runs.recover", () => aido.runs.recover({ adopt: true }));
    const onEnd = (id: string) => void this.#quietly("sandbox.ended", () => aido.sandboxes.get(id));
    this.#watch = aido.driver.watch(onEnd, this.#stopping.signal).catch(() => undefined);
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#watch;
  }

  async #run(): Promise<void> {
    const { aido } = this.#deps;
    let reconciledAt = Date.now();
    while (await this.#sleep()) {
      await this.#quietly("sandboxes.expire", () => aido.sandboxes.expire());
      if (Date.now() - reconciledAt < RECONCILE_EVERY_MS) continue;
      reconciledAt = Date.now();
      await this.#quietly("sandboxes.reconcile", () => aido.sandboxes.reconcile());
      await this.#quietly("answers.forget", () => this.#deps.forgetAnswers(new Date()));
    }
  }

  /** False when the server stops. */
  #sleep(): Promise<boolean> {
    const { signal } = this.#stopping;
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(true), EXPIRE_EVERY_MS);
      const stopped = () => done(false);
      signal.addEventListener("abort", stopped, { once: true });
      const done = (goOn: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stopped);
        resolve(goOn);
      };
    });
  }

  /** One failure must not end the loop; it is said once, and the next look tries again. */
  async #quietly(event: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#deps.logger.warn({ event, message }, "housekeeping failed");
    }
  }
}
