import { AidoError, type SandboxState } from "@aido/sdk/protocol";
import { ANONYMOUS, OWNER_LABEL, ownerOf } from "../../core/access/owner-label.ts";
import type { Counts, SandboxTotals } from "../../core/metrics/counters.ts";
import type {
  DemotionQuery,
  OwnerUse,
  SandboxPatch,
  SandboxQuery,
  SandboxRecord,
  SandboxStore,
} from "../../core/store/store.ts";
import type { MemoryCounters } from "./memory-counters.ts";

type DueRecord = Pick<SandboxRecord, "id" | "tierSince">;

/** Insertion order of the map is the order of age. */
export class MemorySandboxes implements SandboxStore {
  readonly #records = new Map<string, SandboxRecord>();
  readonly #onRemove: (id: string) => void;
  readonly #counters: MemoryCounters;
  #peak = 0;

  constructor(counters: MemoryCounters, onRemove: (id: string) => void) {
    this.#counters = counters;
    this.#onRemove = onRemove;
  }

  has(id: string): boolean {
    return this.#records.has(id);
  }

  async insert(record: SandboxRecord): Promise<void> {
    if (this.#records.has(record.id)) throw taken(`id ${record.id}`, record.id);
    this.#refuseTakenName(record, record.name);
    this.#records.set(record.id, structuredClone(record));
    this.#notePeak();
  }

  async get(id: string): Promise<SandboxRecord | undefined> {
    return structuredClone(this.#records.get(id));
  }

  async find(reference: string, limit: number, owner?: string): Promise<readonly SandboxRecord[]> {
    const live = [...this.#records.values()].filter(
      ({ state, labels }) => state !== "deleted" && (owner === undefined || ownerOf(labels) === owner),
    );
    const exact = live.find((record) => record.id === reference);
    if (exact !== undefined) return [structuredClone(exact)];
    const named = live.filter((record) => record.name === reference);
    const rank = ({ labels }: SandboxRecord) => (ownerOf(labels) === ANONYMOUS ? "" : ownerOf(labels));
    named.sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
    if (named.length > 0) return structuredClone(named.slice(0, limit));
    if (reference.length < 2) return [];
    const matches = live.filter((record) => record.id.startsWith(reference));
    matches.sort((a, b) => (a.id < b.id ? -1 : 1));
    return structuredClone(matches.slice(0, limit));
  }

  async list(query: SandboxQuery = {}): Promise<readonly SandboxRecord[]> {
    let records = [...this.#records.values()].reverse();
    if (query.before !== undefined) {
      const cursor = records.findIndex((record) => record.id === query.before);
      records = cursor < 0 ? [] : records.slice(cursor + 1);
    }
    const labels = Object.entries(query.labels ?? {});
    const matches = records.filter(
      (record) =>
        (query.states === undefined ? record.state !== "deleted" : query.states.includes(record.state)) &&
        labels.every(([key, value]) => record.labels[key] === value),
    );
    return structuredClone(matches.slice(0, query.limit ?? 1000));
  }

  async transition(
    id: string,
    from: SandboxState | readonly SandboxState[],
    to: SandboxState,
    patch: SandboxPatch = {},
    counts?: Counts,
  ): Promise<boolean> {
    const record = this.#records.get(id);
    if (record === undefined || !(typeof from === "string" ? [from] : from).includes(record.state))
      return false;
    this.#refuseTakenName({ ...record, ...patch }, patch.name);
    Object.assign(record, structuredClone(patch), { state: to });
    this.#notePeak();
    this.#counters.addNow(counts);
    return true;
  }

  async update(id: string, patch: SandboxPatch, counts?: Counts): Promise<void> {
    const record = this.#records.get(id);
    if (record === undefined) return;
    this.#refuseTakenName({ ...record, ...patch }, patch.name);
    Object.assign(record, structuredClone(patch));
    this.#counters.addNow(counts);
  }

  async due(now: Date, limit: number): Promise<readonly SandboxRecord[]> {
    const due = [...this.#records.values()].filter(
      (record) =>
        (record.state === "running" || record.state === "stopped") &&
        record.expiresAt !== undefined &&
        record.expiresAt <= now,
    );
    due.sort((a, b) => Number(a.expiresAt) - Number(b.expiresAt));
    return structuredClone(due.slice(0, limit));
  }

  async dueForDemotion(query: DemotionQuery): Promise<readonly SandboxRecord[]> {
    const order = (a: DueRecord, b: DueRecord) =>
      Number(a.tierSince) - Number(b.tierSince) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
    const due = [...this.#records.values()].filter(
      (record) =>
        record.tier === query.tier &&
        Number(record.tierSince) <= Number(query.since) &&
        (query.ownDestination !== true || record.snapshotDestination !== undefined) &&
        (query.after === undefined || order(record, query.after) > 0),
    );
    return structuredClone(due.sort(order).slice(0, query.limit));
  }

  async totals(): Promise<SandboxTotals> {
    const running = this.#running();
    return {
      active: running.length,
      peak: this.#peak,
      cpus: running.reduce((sum, { limits }) => sum + limits.cpus, 0),
      memoryBytes: running.reduce((sum, { limits }) => sum + limits.memoryBytes, 0),
    };
  }

  async usedBy(owner: string): Promise<OwnerUse> {
    const own = [...this.#records.values()].filter(
      ({ state, labels }) => state !== "deleted" && labels[OWNER_LABEL] === owner,
    );
    const active = own.filter(({ state }) => state !== "stopped");
    return {
      sandboxes: own.length,
      cpus: active.reduce((sum, { limits }) => sum + limits.cpus, 0),
      memoryBytes: active.reduce((sum, { limits }) => sum + limits.memoryBytes, 0),
    };
  }

  async remove(id: string, counts?: Counts): Promise<void> {
    if (this.#records.delete(id)) this.#counters.addNow(counts);
    this.#onRemove(id);
  }

  async idleSince(now: Date, limit: number): Promise<readonly SandboxRecord[]> {
    const idleAt = (record: SandboxRecord) => record.lastActivityAt.getTime() + record.idleTimeoutMs;
    const idle = this.#mayIdle().filter((record) => idleAt(record) <= now.getTime());
    idle.sort((a, b) => idleAt(a) - idleAt(b));
    return structuredClone(idle.slice(0, limit));
  }

  async touch(ids: readonly string[], at: Date): Promise<void> {
    for (const id of ids) {
      const record = this.#records.get(id);
      if (record?.state === "running" && record.lastActivityAt < at) record.lastActivityAt = at;
    }
  }

  async touchAll(at: Date): Promise<void> {
    for (const record of this.#mayIdle()) record.lastActivityAt = at;
  }

  #mayIdle(): SandboxRecord[] {
    return this.#running().filter((record) => record.idleTimeoutMs > 0);
  }

  #running(): SandboxRecord[] {
    return [...this.#records.values()].filter(({ state }) => state === "running");
  }

  #notePeak(): void {
    this.#peak = Math.max(this.#peak, this.#running().length);
  }

  #refuseTakenName({ id, labels }: SandboxRecord, name: string | undefined): void {
    if (name === undefined) return;
    for (const record of this.#records.values()) {
      if (record.name !== name || record.state === "deleted" || record.id === id) continue;
      if (ownerOf(record.labels) === ownerOf(labels)) throw taken(`name ${name}`, record.id);
    }
  }
}

function taken(what: string, by: string): AidoError {
  return new AidoError("CONTAINER_NAME_TAKEN", `The ${what} is already in use by sandbox ${by}`, {
    details: { id: by },
  });
}
