import { toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { SandboxStore } from "../store/store.ts";

/** What keeps a sandbox in use besides its running execs, which the store knows. */
export type ActivityKind = "connection" | "files" | "session";

/** The sandbox is in use until this is disposed; twice is once. */
export type ActivityGuard = Disposable;

export interface ActivityDeps {
  readonly sandboxes: Pick<SandboxStore, "touch">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Uses are written down together, after at most this. */
const FLUSH_MS = 1000;
/** A sandbox in use is written down this often. */
const TOUCH_EVERY_MS = 5000;
/** How much later than recorded a sandbox may have been used, by whatever process. */
export const TOUCH_SLACK_MS = 2 * (FLUSH_MS + TOUCH_EVERY_MS);

/**
 * Who uses which sandbox in this process, and when others' processes last heard of it: a use costs a look into a map,
 * and the store is written behind it.
 */
export class Activity {
  readonly #deps: ActivityDeps;
  readonly #open = new Map<string, Map<ActivityKind, number>>();
  readonly #pending = new Set<string>();
  /** Of the last seconds only. */
  readonly #written = new Map<string, number>();
  readonly #closing = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
  }

  begin(sandboxId: string, kind: ActivityKind): ActivityGuard {
    this.#count(sandboxId, kind, 1);
    this.touch(sandboxId);
    let isOpen = true;
    return {
      [Symbol.dispose]: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#count(sandboxId, kind, -1);
        this.touch(sandboxId);
      },
    };
  }

  /** Somebody has just used it; `knownAt` is when that was last written down, as far as the caller knows. */
  touch(sandboxId: string, knownAt?: Date): void {
    if (!this.#isFresh(sandboxId, knownAt?.getTime())) this.#pending.add(sandboxId);
    if (this.#pending.size > 0 || this.#open.size > 0) this.#write();
  }

  isBusy(sandboxId: string): boolean {
    return this.#open.has(sandboxId);
  }

  /** Guards that are open, of every sandbox. */
  count(kind?: ActivityKind): number {
    let total = 0;
    for (const kinds of this.#open.values()) {
      for (const [one, count] of kinds) if (kind === undefined || one === kind) total += count;
    }
    return total;
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    await this.flush();
  }

  #count(sandboxId: string, kind: ActivityKind, change: 1 | -1): void {
    const kinds = this.#open.get(sandboxId) ?? new Map<ActivityKind, number>();
    const count = (kinds.get(kind) ?? 0) + change;
    if (count === 0) kinds.delete(kind);
    else kinds.set(kind, count);
    if (kinds.size === 0) this.#open.delete(sandboxId);
    else this.#open.set(sandboxId, kinds);
  }

  #write(): void {
    if (this.#writing !== undefined || this.#closing.signal.aborted) return;
    this.#writing = this.#keepWriting().finally(() => {
      this.#writing = undefined;
    });
  }

  async #keepWriting(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#pending.size > 0 || this.#open.size > 0) {
      await this.#deps.clock.sleep(FLUSH_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      await this.flush();
    }
  }

  /** Writes what is to be written now. */
  async flush(): Promise<void> {
    const { sandboxes, clock, logger } = this.#deps;
    for (const id of this.#written.keys()) if (!this.#isFresh(id)) this.#written.delete(id);
    for (const id of this.#open.keys()) if (!this.#written.has(id)) this.#pending.add(id);
    if (this.#pending.size === 0) return;
    const ids = [...this.#pending];
    this.#pending.clear();
    const now = clock.now();
    try {
      await sandboxes.touch(ids, now);
      for (const id of ids) this.#written.set(id, now.getTime());
    } catch (thrown) {
      // The next use writes it; a sandbox that is in use here is tried again at the next turn.
      const { code, message } = toAidoError(thrown);
      logger.warn({ event: "sandbox.touch", code, message }, "The use of sandboxes is not written down");
    }
  }

  /** A clock that went back makes nothing fresh. */
  #isFresh(sandboxId: string, knownMs = Number.NEGATIVE_INFINITY): boolean {
    const age = this.#deps.clock.now().getTime() - (this.#written.get(sandboxId) ?? knownMs);
    return age >= 0 && age < TOUCH_EVERY_MS;
  }
}
