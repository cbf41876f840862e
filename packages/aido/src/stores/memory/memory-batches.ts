import { type BatchEnd, type BatchRecord, type BatchStore, isFailed } from "../../core/batch/batch-store.ts";
import type { Counts } from "../../core/metrics/counters.ts";
import type { MemoryCounters } from "./memory-counters.ts";

export class MemoryBatches implements BatchStore {
  readonly #batches = new Map<string, { record: BatchRecord; items: Map<number, object> }>();
  readonly #counters: MemoryCounters;

  constructor(counters: MemoryCounters) {
    this.#counters = counters;
  }

  async insert(batch: BatchRecord): Promise<boolean> {
    if (this.#batches.has(batch.id)) return false;
    this.#batches.set(batch.id, { record: structuredClone(batch), items: new Map() });
    return true;
  }

  async get(id: string): Promise<BatchRecord | undefined> {
    return structuredClone(this.#batches.get(id)?.record);
  }

  async list({ owner, limit }: { owner?: string | undefined; limit: number }): Promise<BatchRecord[]> {
    const all = [...this.#batches.values()].map(({ record }) => record).reverse();
    return structuredClone(
      all.filter((record) => owner === undefined || record.owner === owner).slice(0, limit),
    );
  }

  async endItem(id: string, position: number, result: object, counts: Counts): Promise<boolean> {
    const items = this.#batches.get(id)?.items;
    if (items === undefined || items.has(position)) return false;
    items.set(position, structuredClone(result));
    this.#counters.addNow(counts);
    return true;
  }

  async items(id: string): Promise<ReadonlyMap<number, object>> {
    return structuredClone(this.#batches.get(id)?.items ?? new Map());
  }

  async progress(id: string): Promise<{ ended: number; failed: number }> {
    const items = [...(this.#batches.get(id)?.items.values() ?? [])];
    return { ended: items.length, failed: items.filter(isFailed).length };
  }

  async end(id: string, end: BatchEnd): Promise<boolean> {
    const record = this.#batches.get(id)?.record;
    if (record?.state !== "running") return false;
    Object.assign(record, structuredClone(end));
    return true;
  }

  async running(): Promise<readonly BatchRecord[]> {
    const all = [...this.#batches.values()].map(({ record }) => record);
    return structuredClone(all.filter(({ state }) => state === "running"));
  }

  async remove(id: string): Promise<boolean> {
    return this.#batches.delete(id);
  }

  async removeExpired(now: Date, limit: number): Promise<number> {
    const due = [...this.#batches.values()]
      .map(({ record }) => record)
      .filter(({ state, expiresAt }) => state !== "running" && expiresAt <= now)
      .slice(0, limit);
    for (const { id } of due) this.#batches.delete(id);
    return due.length;
  }
}
