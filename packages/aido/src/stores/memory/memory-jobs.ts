import type { Counts } from "../../core/metrics/counters.ts";
import type { JobStore, RunningJob } from "../../core/store/store.ts";
import type { MemoryCounters } from "./memory-counters.ts";

export class MemoryJobs implements JobStore {
  readonly #running = new Map<string, RunningJob>();
  readonly #counters: MemoryCounters;

  constructor(counters: MemoryCounters) {
    this.#counters = counters;
  }

  async begin(job: RunningJob): Promise<void> {
    this.#running.set(job.id, { ...job });
  }

  async end(id: string, counts: Counts): Promise<boolean> {
    const isOurs = this.#running.delete(id);
    if (isOurs) this.#counters.addNow(counts);
    return isOurs;
  }

  async list(): Promise<readonly RunningJob[]> {
    return [...this.#running.values()].map((job) => ({ ...job }));
  }
}
