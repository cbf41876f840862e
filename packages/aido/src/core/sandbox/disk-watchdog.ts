import { toAidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";

const INTERVAL_MS = 1000;
/** Measuring may take at most a tenth of the time. */
const PAUSE_PER_COST = 10;

/**
 * Ends a sandbox that has written more than it may, where the driver does not enforce that itself. It looks while
 * this process has to do with the sandbox: best effort, between two looks more can be written.
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
    const { clock, store, logger } = this.#deps;
    try {
      if ((await this.#capabilities()).enforced.disk) return;
      while (!signal.aborted) {
        const began = clock.now().getTime();
        const used = await this.#used(record, signal);
        if (used > record.limits.diskBytes) {
          await this.#end(record, used);
          return;
        }
        const cost = clock.now().getTime() - began;
        await clock.sleep(Math.max(INTERVAL_MS, cost * PAUSE_PER_COST), signal);
        if ((await store.sandboxes.get(record.id))?.state !== "running") return;
      }
    } catch (thrown) {
      if (signal.aborted) return;
      const { code, message } = toAidoError(thrown);
      logger.debug(
        { event: "disk.watch", sandboxId: record.id, code, message },
        "Disk use is no longer watched",
      );
    }
  }

  async #used(record: SandboxRecord, signal: AbortSignal): Promise<number> {
    const { driver, supervisors } = this.#deps;
    const { diskBytes } = await driver.usage(record.id);
    if (diskBytes !== undefined) return diskBytes;
    const tool = supervisors.get(record).tool(["du", "/", record.workdir], { signal });
    const answer: Uint8Array[] = [];
    for await (const chunk of tool.stdout) answer.push(chunk);
    await tool.done;
    return Number(Buffer.concat(answer).readBigUInt64LE());
  }

  async #end(record: SandboxRecord, usedBytes: number): Promise<void> {
    const { driver, evidence } = this.#deps;
    await evidence.append(record.id, "limit.disk", { usedBytes, limitBytes: record.limits.diskBytes });
    // The reason is recorded first: whoever sees the container end finds it there.
    await this.#ender.markEnded(record.id, "disk_full", { usedBytes });
    await driver.stop(record.id, 0);
  }
}
