import { COUNTERS, type CounterName, type CounterStore, type Counts } from "../../core/metrics/counters.ts";

export class MemoryCounters implements CounterStore {
  readonly #values = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<CounterName, number>;

  async add(counts: Counts): Promise<void> {
    this.addNow(counts);
  }

  addNow(counts: Counts | undefined): void {
    for (const [name, value] of Object.entries(counts ?? {})) {
      this.#values[name as CounterName] += Math.round(value);
    }
  }

  async read(): Promise<Readonly<Record<CounterName, number>>> {
    return { ...this.#values };
  }
}
