import type { AuditEntry, AuditQuery, AuditStore, StoredAuditEntry } from "../core/access/audit.ts";
import type { Logger } from "../core/logger.ts";

const FLUSH_AFTER_MS = 50;
/** Between attempts while the store cannot write: each may hold up the whole process for seconds. */
const RETRY_AFTER_MS = 5_000;
/** What is kept in memory until it can be written. */
const MAX_WAITING = 10_000;
/** Of the same read by the same caller one entry is kept in this time. */
const REPEAT_MS = 60_000;
const MAX_REPEATS = 5_000;

/**
 * Takes entries at once and writes them in batches, so that no request waits for the disk. What cannot be written is kept
 * and tried again; entries are lost only beyond a bound, and how many is logged.
 */
export class AuditTrail {
  readonly #store: AuditStore;
  readonly #logger: Logger;
  #waiting: AuditEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isFailing = false;
  #lost = 0;
  /** When each was last kept, the oldest first. */
  readonly #repeats = new Map<string, number>();

  constructor(store: AuditStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  record(entry: AuditEntry): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(entry);
    else this.#lost += 1;
    if (this.#isFailing) return;
    if (this.#waiting.length >= MAX_WAITING) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
  }

  /** For what clients ask again and again: who did it is kept, not how often. */
  recordRepeated(entry: AuditEntry): void {
    const { operation, owner, sandbox, status, code } = entry;
    const key = JSON.stringify([operation, owner, sandbox, status, code]);
    const last = this.#repeats.get(key);
    const now = entry.at.getTime();
    if (last !== undefined && now >= last && now - last < REPEAT_MS) return;
    this.#repeats.delete(key);
    this.#repeats.set(key, now);
    const [oldest] = this.#repeats.keys();
    if (this.#repeats.size > MAX_REPEATS && oldest !== undefined) this.#repeats.delete(oldest);
    this.record(entry);
  }

  /** Includes what was recorded a moment ago. */
  async list(query: AuditQuery): Promise<readonly StoredAuditEntry[]> {
    await this.flush();
    return this.#store.list(query);
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Tries a last time. */
  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
    this.#lost += this.#waiting.length;
    this.#waiting = [];
    this.#tellLost();
  }

  async #write(): Promise<void> {
    const entries = this.#waiting;
    if (entries.length === 0) return;
    this.#waiting = [];
    try {
      await this.#store.append(entries);
      if (this.#isFailing) this.#logger.info({ event: "audit.append" }, "audit entries are written again");
      this.#isFailing = false;
    } catch (thrown) {
      this.#keep(entries, thrown);
    }
    this.#tellLost();
  }

  #keep(entries: readonly AuditEntry[], thrown: unknown): void {
    const all = [...entries, ...this.#waiting];
    this.#waiting = all.slice(0, MAX_WAITING);
    this.#lost += all.length - this.#waiting.length;
    if (!this.#isFailing) {
      const fields = { event: "audit.append", waiting: all.length, error: String(thrown) };
      this.#logger.warn(fields, "audit entries cannot be written and are kept");
    }
    this.#isFailing = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), RETRY_AFTER_MS);
    this.#timer.unref();
  }

  /** Their requests are answered already; that they are not on record must be seen by somebody. */
  #tellLost(): void {
    if (this.#lost === 0) return;
    this.#logger.error({ event: "audit.append", lost: this.#lost }, "audit entries lost");
    this.#lost = 0;
  }
}
