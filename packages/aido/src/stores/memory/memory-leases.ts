import type { LeaseStore } from "../../core/store/store.ts";

export class MemoryLeases implements LeaseStore {
  readonly #leases = new Map<string, { holder: string; until: Date }>();

  async take(name: string, holder: string, until: Date, now: Date): Promise<boolean> {
    const held = this.#leases.get(name);
    if (held !== undefined && held.holder !== holder && held.until > now && held.until <= until) return false;
    this.#leases.set(name, { holder, until });
    return true;
  }

  async renew(name: string, holder: string, until: Date): Promise<boolean> {
    if (this.#leases.get(name)?.holder !== holder) return false;
    this.#leases.set(name, { holder, until });
    return true;
  }

  async release(name: string, holder: string): Promise<void> {
    if (this.#leases.get(name)?.holder === holder) this.#leases.delete(name);
  }

  async endOf(name: string): Promise<Date | undefined> {
    return this.#leases.get(name)?.until;
  }

  async forgetEnded(before: Date): Promise<void> {
    for (const [name, { until }] of this.#leases) if (until < before) this.#leases.delete(name);
  }
}
