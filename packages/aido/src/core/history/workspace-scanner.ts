import type { FileMode } from "./git-objects.ts";
import { isTracked, type KnownEntries } from "./known-entries.ts";
import { type ScanRecord, scanRecords } from "./scan-records.ts";

/** How the scanner asks the sandbox. */
export interface WorkspaceReader {
  /** Output of a builtin tool on the workspace (root and path are filled in); rejects when the tool fails. */
  tool(
    argv: readonly string[],
    options?: {
      stdin?: Uint8Array | AsyncIterable<Uint8Array>;
      signal?: AbortSignal | undefined;
      isLasting?: boolean;
    },
  ): AsyncIterable<Uint8Array>;
}

export interface WorkspaceChanges {
  /** Paths that are no longer there, with all beneath them. */
  removed: string[];
  /** Files and links that may differ from what is known. */
  changed: ScanRecord[];
}

/** The kernel stamps ctime with a coarse clock; what is this close to a look is looked at again. */
export const RACY_NS = 100_000_000n;

/**
 * Tells what changed in a workspace since the last look, from change times alone: the supervisor walks the tree and sends only
 * entries whose ctime is new. Code in the sandbox cannot set a ctime back.
 */
export class WorkspaceScanner {
  readonly known: KnownEntries;
  readonly #reader: WorkspaceReader;
  readonly #now: () => bigint;

  constructor(
    reader: WorkspaceReader,
    known: KnownEntries,
    now: () => bigint = () => BigInt(Date.now()) * 1_000_000n,
  ) {
    this.#reader = reader;
    this.known = known;
    this.#now = now;
  }

  async changes(signal?: AbortSignal): Promise<WorkspaceChanges> {
    const startedNs = this.#now();
    const { sinceNs } = this.known;
    const found = { removed: [] as string[], changed: new Map<string, ScanRecord>() };
    // A directory that came from elsewhere holds entries with old change times: then everything is looked at once.
    if (!(await this.#scan(sinceNs, startedNs, found, signal)))
      await this.#scan(0n, startedNs, found, signal);
    // Whatever changes from now on is not older than what was seen, also when the sandbox's clock is behind ours.
    let { newestNs } = this.known;
    if (newestNs > startedNs) newestNs = startedNs;
    this.known.sinceNs = newestNs > RACY_NS ? newestNs - RACY_NS : 0n;
    const isStillThere = ({ path, type }: ScanRecord) => this.known.get(path)?.type === type;
    return { removed: found.removed, changed: [...found.changed.values()].filter(isStillThere) };
  }

  /** False when a directory was moved in, so that what lies beneath it was not told. */
  async #scan(
    since: bigint,
    startedNs: bigint,
    found: { removed: string[]; changed: Map<string, ScanRecord> },
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const told = new Map<string, Set<string>>();
    let isWhole = true;
    const argv = since === 0n ? ["scan"] : ["scan", String(since)];
    for await (const record of scanRecords(this.#reader.tool(argv, { signal }))) {
      if (record.path !== "" && !isTracked(record.path)) continue;
      if (record.type === "directory") {
        // One that is told only as an entry of its changed parent does not tell its own entries.
        if (record.ctimeNs >= since) told.set(record.path, new Set());
        if (since !== 0n && record.path !== "" && !this.known.isSameDirectory(record)) isWhole = false;
      }
      if (record.path === "") continue;
      const at = record.path.lastIndexOf("/");
      told.get(at < 0 ? "" : record.path.slice(0, at))?.add(record.path.slice(at + 1));
      const { isNew, replaced } = this.known.note(record, startedNs - RACY_NS);
      if (replaced) found.removed.push(record.path);
      if (isNew) found.changed.set(record.path, record);
    }
    if (!isWhole) return false;
    for (const path of this.known.missing(told)) {
      this.known.forget(path);
      found.removed.push(path);
    }
    return true;
  }
}

export function fileMode(record: ScanRecord): FileMode {
  if (record.type === "symlink") return "120000";
  return (record.mode & 0o100) === 0 ? "100644" : "100755";
}
