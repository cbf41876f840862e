import type { Logger } from "../logger.ts";

/** For what is tried again and again: one failure ends nothing, and one that goes on is said once. */
export class RepeatedFailures {
  readonly #logger: Logger;
  /** The last failure of each kind. */
  readonly #said = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Whether it went well. */
  async quietly(event: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#said.delete(event);
      return true;
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      if (this.#said.get(event) !== message) this.#logger.warn({ event, message }, "housekeeping failed");
      this.#said.set(event, message);
      return false;
    }
  }
}
