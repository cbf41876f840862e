import { isTracked, type KnownEntries } from "./known-entries.ts";
import { isPlainPath, type ScanRecord } from "./scan-records.ts";
import type { WatchBudget } from "./watch-budget.ts";
import { type WorkspaceChanges, type WorkspaceReader, WorkspaceScanner } from "./workspace-scanner.ts";
import { type WatchAnswer, WorkspaceWatch } from "./workspace-watch.ts";

/** Some changes make no event: through a name of the file outside the workspace, or from another machine. */
const SCAN_EVERY = 100;
const MAX_PAUSE = 64;

/**
 * What changed since the last look. A process that looks once scans; one that looks again keeps a watch in the
 * sandbox and asks it, so that a look costs what changed. Whenever the watch cannot tell, a scan does.
 */
export class WorkspaceObserver {
  readonly #reader: WorkspaceReader;
  readonly #known: KnownEntries;
  readonly #scanner: WorkspaceScanner;
  readonly #budget: WatchBudget;
  #watch: WorkspaceWatch | undefined;
  /** Looks since the last scan. */
  #asked = 0;
  /** Looks before a watch is tried (again). */
  #pause = 1;
  #failures = 0;

  constructor(reader: WorkspaceReader, known: KnownEntries, budget: WatchBudget) {
    this.#reader = reader;
    this.#budget = budget;
    this.#known = known;
    this.#scanner = new WorkspaceScanner(reader, known);
  }

  /** With `isQuiet` the supervisor has said, after whatever is to be told, that the watch has nothing new. */
  async changes(signal?: AbortSignal, isQuiet = false): Promise<WorkspaceChanges> {
    if (isQuiet && this.#watch !== undefined && this.#asked < SCAN_EVERY) {
      this.#budget.use(this.#watch);
      this.#asked += 1;
      return { removed: [], changed: [] };
    }
    const answer = await this.#ask(signal);
    if (answer !== undefined && !answer.everything) return this.#apply(answer);
    // The watch comes before the scan, so that nothing falls between them.
    if (this.#watch === undefined) await this.#tryWatch(signal);
    const changes = await this.#scanner.changes(signal);
    this.#asked = 0;
    return changes;
  }

  /** What is known is to be read anew: the next look must be a scan. */
  lose(): void {
    this.#watch?.abort();
    this.#letGo();
  }

  close(): void {
    this.#watch?.close();
    this.#letGo();
  }

  #letGo(): void {
    if (this.#watch !== undefined) this.#budget.release(this.#watch);
    this.#watch = undefined;
  }

  async #ask(signal: AbortSignal | undefined): Promise<WatchAnswer | undefined> {
    if (this.#watch === undefined || this.#asked >= SCAN_EVERY) return undefined;
    try {
      this.#budget.use(this.#watch);
      const answer = await this.#watch.ask(signal);
      this.#asked += 1;
      if (answer.everything) this.#failed();
      else this.#failures = 0;
      return answer;
    } catch {
      signal?.throwIfAborted();
      this.#failed();
      this.lose();
      return undefined;
    }
  }

  async #tryWatch(signal: AbortSignal | undefined): Promise<void> {
    if (this.#pause > 0) {
      this.#pause -= 1;
      return;
    }
    try {
      this.#watch = await WorkspaceWatch.start(this.#reader, signal);
      this.#budget.use(this.#watch);
    } catch {
      signal?.throwIfAborted();
      this.#failed();
    }
  }

  /** One that fails again and again, such as where the kernel has no more watches to give, is left alone for a while. */
  #failed(): void {
    this.#failures += 1;
    this.#pause = Math.min(2 ** this.#failures - 2, MAX_PAUSE);
    if (this.#failures > 2) this.lose();
  }

  #apply({ gone, records }: WatchAnswer): WorkspaceChanges {
    const removed: string[] = [];
    for (const path of gone) {
      if (path === "" || !isPlainPath(path) || !isTracked(path)) continue;
      this.#known.forget(path);
      removed.push(path);
    }
    const changed = new Map<string, ScanRecord>();
    // Directories before what they hold.
    for (const record of records.sort((a, b) => (a.path < b.path ? -1 : 1))) {
      if (record.path === "" || !isTracked(record.path)) continue;
      const { replaced } = this.#known.note(record, 0n);
      if (replaced) removed.push(record.path);
      if (record.type !== "file" && record.type !== "symlink") continue;
      changed.set(record.path, record);
      if (record.type === "symlink") continue;
      for (const path of this.#known.otherNames(record)) changed.set(path, { ...record, path });
    }
    const isStillThere = ({ path, type }: ScanRecord) => this.#known.get(path)?.type === type;
    return { removed, changed: [...changed.values()].filter(isStillThere) };
  }
}
