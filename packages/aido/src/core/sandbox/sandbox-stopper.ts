import type { SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import type { TierKeeper } from "../tier/tier-keeper.ts";
import type { ChangedFiles } from "./changed-files.ts";
import { busy, isStop, type SandboxClaims } from "./sandbox-claims.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";
import type { StopOptions } from "./sandbox-lifecycle.ts";

const STOP_GRACE_MS = 10_000;
const SETTLE_LIMIT_MS = 10_000;
/** A stop takes as long as its grace and a little more. */
const PATIENCE_MS = 60_000;
const POLL_MS = 50;

interface StopperParts {
  claims: SandboxClaims;
  ender: SandboxEnder;
  tiers: TierKeeper;
  changed: ChangedFiles;
  /** What this process does for a running sandbox ends. */
  letGo: (sandboxId: string) => void;
  settled: ((sandboxId: string) => Promise<void> | undefined) | undefined;
}

/** From running to stopped. Whoever uses the sandbox meanwhile waits for the end of it, and is not ended with it. */
export class SandboxStopper {
  readonly #deps: SandboxDeps;
  readonly #parts: StopperParts;

  constructor(deps: SandboxDeps, parts: StopperParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  async stop(id: string, options: StopOptions): Promise<void> {
    const { clock, store } = this.#deps;
    await this.#settle(id, options.signal);
    await this.#parts.claims.hold(id, options.reason === "idle" ? "idle" : "stop", async () => {
      // Before the last look: who comes after it finds the mark, who came before is seen by it.
      if (!(await this.#mark(id, clock.now()))) return;
      let isEnded = false;
      try {
        const record = await store.sandboxes.get(id);
        if (record === undefined) return;
        if (options.onlyIf !== undefined && !(await options.onlyIf(record))) return;
        await this.#end(record, options);
        isEnded = true;
      } finally {
        if (!isEnded) await this.#mark(id, undefined);
      }
    });
  }

  /** Of a stop that was begun; costs nothing to ask. The mark alone may be that of a process which has died. */
  isBegun({ state, stoppedAt }: SandboxRecord): boolean {
    return state === "running" && stoppedAt !== undefined;
  }

  /** Until a stop that was begun is over, whatever came of it. Raises CONTAINER_BUSY when it takes too long. */
  async over(id: string, signal: AbortSignal | undefined): Promise<void> {
    const { clock, store } = this.#deps;
    const deadline = clock.now().getTime() + PATIENCE_MS;
    for (;;) {
      const claim = await store.claims.get(id);
      const isLive = claim !== undefined && isStop(claim) && !this.#parts.claims.isAbandoned(claim);
      const record = await store.sandboxes.get(id);
      if (!isLive || record === undefined || !this.isBegun(record)) return;
      if (clock.now().getTime() >= deadline) throw busy(claim);
      await clock.sleep(POLL_MS, signal);
    }
  }

  async #end(running: SandboxRecord, options: StopOptions): Promise<void> {
    const { driver, store } = this.#deps;
    const { changed, ender, tiers } = this.#parts;
    const { id } = running;
    this.#parts.letGo(id);
    await changed.tell(running);
    await driver.stop(id, options.graceMs ?? STOP_GRACE_MS, options.signal);
    const container = await driver.inspect(id);
    const record = await store.sandboxes.get(id);
    if (record === undefined) return;
    const reason = await ender.reasonFor(record, container);
    const isOurs = reason === "lost" || reason === "stopped";
    if (isOurs) await ender.markEnded(id, options.reason ?? "stopped", options);
    else await ender.markEnded(id, reason);
    await tiers.commitOnStop(id);
  }

  /** Every use reads the record: so other processes know too, and the use costs nothing more. */
  async #mark(id: string, stoppedAt: Date | undefined): Promise<boolean> {
    return await this.#deps.store.sandboxes.transition(id, "running", "running", { stoppedAt });
  }

  /** What a sandbox holds up must not keep it from being stopped. */
  async #settle(id: string, signal: AbortSignal | undefined): Promise<void> {
    const work = this.#parts.settled?.(id);
    if (work === undefined) return;
    const limit = {
      clock: this.#deps.clock,
      limitMs: SETTLE_LIMIT_MS,
      what: "Reading its workspace",
      signal,
    };
    await withTimeLimit(limit, () => work).catch(() => undefined);
    signal?.throwIfAborted();
  }
}
