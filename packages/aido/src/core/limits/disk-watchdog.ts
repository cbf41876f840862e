import { toAidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxEnder } from "../sandbox/sandbox-ender.ts";
import type { SandboxRecord } from "../store/store.ts";
import { diskUse, writableMounts } from "./disk-use.ts";

const SHORTEST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Faster than most disks: between two looks hardly more is written than the limit itself. */
const BYTES_PER_MS = 1024 * 1024;
/** Measuring may take at most a tenth of the time. */
const PAUSE_PER_COST = 10;
const MAX_FAILURES = 10;

/**
 * Ends a sandbox that has written more than it may, where the driver does not enforce that itself. It looks while
 * this process has to do with the sandbox: best effort, between two looks more can be written. One whose use cannot
 * be told again and again is ended too.
 */
export class DiskWatchdog {
  readonly #deps: SandboxDeps;
  readonly #ender: SandboxEnder;
  readonly #capabilities: () => Promise<DriverCapabilities>;
  readonly #watched = new Map<string, { stop: AbortController; done: Promise<void> }>();

  constructor(deps: SandboxDeps, ender: SandboxEnder, capabilities: () => Promise<DriverCapabilities>) {
    this.#deps = deps;
    this.#ender = ender;
    this.#capabilities = capabilities;
  }

  /** Until the sandbox ends or is forgotten. Watching twice is watching once. */
  watch(record: SandboxRecord): void {
    if (record.limits.diskBytes === 0 || this.#watched.has(record.id)) return;
    const stop = new AbortController();
    const done = this.#run(record, stop.signal).finally(() => {
      if (this.#watched.get(record.id)?.stop === stop) this.#watched.delete(record.id);
    });
    this.#watched.set(record.id, { stop, done });
  }

  forget(sandboxId: string): void {
    this.#watched.get(sandboxId)?.stop.abort();
  }

  async close(): Promise<void> {
    const all = [...this.#watched.values()];
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  async #run(record: SandboxRecord, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const paceMs = paceOf(record.limits.diskBytes);
    let failures = 0;
    for (let pauseMs = paceMs; !signal.aborted && failures < MAX_FAILURES; ) {
      await clock.sleep(pauseMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      const began = clock.now().getTime();
      try {
        if (await this.#isOver(record, signal)) return;
        failures = 0;
      } catch (thrown) {
        if (signal.aborted) return;
        failures = await this.#failed(record, thrown, failures).catch(() => failures);
      }
      pauseMs = Math.max(paceMs, (clock.now().getTime() - began) * PAUSE_PER_COST);
    }
  }

  async #isOver(record: SandboxRecord, signal: AbortSignal): Promise<boolean> {
    const state = (await this.#deps.store.sandboxes.get(record.id))?.state;
    if (state !== "running" && state !== "pending") return true;
    // A quota of the backend holds for what it stores itself, not for directories of the host.
    if (writableMounts(record).length === 0 && (await this.#capabilities()).enforced.disk) return true;
    const usedBytes = await diskUse(this.#deps, record, signal);
    if (usedBytes <= record.limits.diskBytes) return false;
    await this.#end(record, { usedBytes });
    return true;
  }

  /** How many failures in a row it makes. A sandbox that cannot be measured is not let write on without a limit. */
  async #failed(record: SandboxRecord, thrown: unknown, before: number): Promise<number> {
    const { driver, logger } = this.#deps;
    // One that has ended is not at fault, nor is it when its backend does not answer.
    if ((await driver.inspect(record.id))?.state !== "running") return before;
    const { code, message } = toAidoError(thrown);
    const about = { event: "disk.watch", sandboxId: record.id, code, message };
    logger.debug(about, "Disk use could not be measured");
    if (before + 1 < MAX_FAILURES) return before + 1;
    logger.warn(about, "Disk use cannot be measured; the sandbox is stopped");
    await this.#end(record, { unmeasured: message });
    return MAX_FAILURES;
  }

  async #end(record: SandboxRecord, why: Readonly<Record<string, unknown>>): Promise<void> {
    const { driver, evidence } = this.#deps;
    await evidence.append(record.id, "limit.disk", { ...why, limitBytes: record.limits.diskBytes });
    // The reason is recorded first: whoever sees the container end finds it there.
    await this.#ender.markEnded(record.id, "disk_full", { detail: why });
    await driver.stop(record.id, 0);
  }
}

/** The more it may write, the longer that takes, and the less often it is looked at. */
function paceOf(diskBytes: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, diskBytes / BYTES_PER_MS));
}
