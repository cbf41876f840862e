import type { AuditEntry, AuditQuery, AuditStore, StoredAuditEntry } from "../core/access/audit.ts";
import type { Logger } from "../core/logger.ts";

const FLUSH_AFTER_MS = 50;
const MAX_WAITING = 10_000;

/** Takes entries at once and writes them in batches, so that no request waits for the disk. */
export class AuditTrail {
  readonly #store: AuditStore;
  readonly #logger: Logger;
  #waiting: AuditEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(store: AuditStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  record(entry: AuditEntry): void {
    this.#waiting.push(entry);
    if (this.#waiting.length >= MAX_WAITING) void this.flush();
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
  }

  /** Includes what was recorded a moment ago. */
  async list(query: AuditQuery): Promise<readonly StoredAuditEntry[]> {
    await this.flush();
    return this.#store.list(query);
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const entries = this.#waiting;
    this.#waiting = [];
    if (entries.length > 0) this.#writing = this.#writing.then(() => this.#write(entries));
    return this.#writing;
  }

  async #write(entries: readonly AuditEntry[]): Promise<void> {
    try {
      await this.#store.append(entries);
    } catch (thrown) {
      // The requests are answered already; that they are not on record must be seen by somebody.
      this.#logger.error(
        { event: "audit.append", lost: entries.length, error: String(thrown) },
        "audit entries lost",
      );
    }
  }
}
