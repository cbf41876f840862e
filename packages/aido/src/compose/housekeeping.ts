import type { CoreAido } from "../core/core-aido.ts";
import type { Logger } from "../core/logger.ts";
import type { SandboxRecord } from "../core/store/store.ts";

export interface HousekeepingDeps {
  aido: CoreAido;
  logger: Logger;
  forgetAnswers: (now: Date) => Promise<void>;
}

const EXPIRE_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 60_000;
/** A driver that does not answer is asked again this often. */
const RETRY_MS = 1_000;
const RECOVER_AT_ONCE = 8;
const PAGE = 1000;

/**
 * What a server does besides answering: takes over what a former process left running, notices ends, removes what has
 * expired. Each look costs what is due, not what exists. A driver that is not there is waited for: the server answers
 * meanwhile, and says so.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #stopping = new AbortController();
  /** The last failure of each kind, so that one that goes on is said once. */
  readonly #said = new Map<string, string>();
  #tasks: readonly Promise<void>[] = [];

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  /** Resolves when everything a former process left has been looked at, or the driver does not answer. */
  async start(): Promise<void> {
    const isDone = await this.#takeOver();
    this.#tasks = [this.#lookAfter(), this.#watch(isDone)];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#tasks);
  }

  async #takeOver(): Promise<boolean> {
    const { aido } = this.#deps;
    if (!(await this.#quietly("sandboxes.reconcile", () => aido.sandboxes.reconcile()))) return false;
    const left = await this.#running();
    // One that does not answer takes its time; it must not hold up all others.
    const recover = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const { id } = next;
        await this.#quietly("execs.recover", () => aido.recover(id));
      }
    };
    await Promise.all(Array.from({ length: RECOVER_AT_ONCE }, recover));
    await this.#quietly("runs.recover", () => aido.runs.recover({ adopt: true }));
    return true;
  }

  async #running(): Promise<SandboxRecord[]> {
    const { sandboxes } = this.#deps.aido.store;
    const all: SandboxRecord[] = [];
    for (let before: string | undefined; ; ) {
      const page = await sandboxes.list({ states: ["running"], limit: PAGE, before });
      all.push(...page);
      before = page.at(-1)?.id;
      if (page.length < PAGE) return all;
    }
  }

  async #lookAfter(): Promise<void> {
    const { aido } = this.#deps;
    let reconciledAt = Date.now();
    while (await this.#sleep(EXPIRE_EVERY_MS)) {
      await this.#quietly("sandboxes.expire", () => aido.sandboxes.expire());
      if (Date.now() - reconciledAt < RECONCILE_EVERY_MS) continue;
      reconciledAt = Date.now();
      await this.#quietly("sandboxes.reconcile", () => aido.sandboxes.reconcile());
      await this.#quietly("answers.forget", () => this.#deps.forgetAnswers(new Date()));
    }
  }

  /** Ends that happen while the driver is away are found by taking over again when it is back. */
  async #watch(isTakenOver: boolean): Promise<void> {
    const { aido } = this.#deps;
    const { signal } = this.#stopping;
    // A container that ends may be one that nobody has or had: of the pool, or just destroyed.
    const look = async (id: string) => {
      const record = await aido.store.sandboxes.get(id);
      if (record !== undefined && record.state !== "deleted") await aido.sandboxes.get(id);
    };
    const onEnd = (id: string) => void this.#quietly("sandbox.ended", () => look(id));
    for (let isCurrent = isTakenOver; !signal.aborted; isCurrent = await this.#takeOver()) {
      if (isCurrent) await aido.driver.watch(onEnd, signal).catch(() => undefined);
      if (!(await this.#sleep(RETRY_MS))) return;
    }
  }

  /** False when the server stops. */
  #sleep(ms: number): Promise<boolean> {
    const { signal } = this.#stopping;
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(true), ms);
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
  async #quietly(event: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#said.delete(event);
      return true;
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      if (this.#said.get(event) !== message) {
        this.#deps.logger.warn({ event, message }, "housekeeping failed");
      }
      this.#said.set(event, message);
      return false;
    }
  }
}
