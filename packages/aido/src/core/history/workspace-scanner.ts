import type { FileMode } from "./git-objects.ts";
import { type ScanRecord, scanRecords } from "./scan-records.ts";

/** How the scanner asks the sandbox. */
export interface WorkspaceReader {
  /** Output of a builtin tool on the workspace (root and path are filled in); rejects when the tool fails. */
  tool(argv: readonly string[], stdin?: Uint8Array): AsyncIterable<Uint8Array>;
}

export interface WorkspaceChanges {
  /** Paths that are no longer there, with all beneath them. */
  removed: string[];
  /** Files and links that may differ from what is known. */
  changed: ScanRecord[];
}

interface Known {
  inode: bigint;
  ctimeNs: bigint;
  isDirectory: boolean;
}

/** The kernel stamps ctime with a coarse clock; what is this close to the last scan is looked at again. */
const RACY_NS = 100_000_000n;

/**
 * Tells what changed in a workspace since the last look, from change times alone: the supervisor walks the tree and sends only
 * entries whose ctime is new. Code in the sandbox cannot set a ctime back.
 */
export class WorkspaceScanner {
  readonly #reader: WorkspaceReader;
  readonly #now: () => bigint;
  readonly #known = new Map<string, Known>();
  readonly #children = new Map<string, Set<string>>();
  #sinceNs = 0n;

  constructor(reader: WorkspaceReader, now: () => bigint = () => BigInt(Date.now()) * 1_000_000n) {
    this.#reader = reader;
    this.#now = now;
  }

  async changes(): Promise<WorkspaceChanges> {
    const startedNs = this.#now();
    const since = this.#sinceNs > RACY_NS ? this.#sinceNs - RACY_NS : 0n;
    let found: WorkspaceChanges = { removed: [], changed: [] };
    const whole = await this.#scan(since, found);
    if (!whole) {
      // A directory that came from elsewhere holds entries with old change times: look at everything once.
      found = { removed: found.removed, changed: [] };
      await this.#scan(0n, found);
    }
    this.#sinceNs = startedNs;
    return found;
  }

  /** Forget everything: the next look is a whole one. */
  reset(): void {
    this.#known.clear();
    this.#children.clear();
    this.#sinceNs = 0n;
  }

  /** False when a directory was moved in, so that what lies beneath it was not told. */
  async #scan(since: bigint, found: WorkspaceChanges): Promise<boolean> {
    const told = new Map<string, Set<string>>();
    let whole = true;
    const argv = since === 0n ? ["scan"] : ["scan", String(since)];
    for await (const record of scanRecords(this.#reader.tool(argv))) {
      if (record.type === "directory") {
        // One that is told only as an entry of its changed parent does not tell its own entries.
        if (record.ctimeNs >= since) told.set(record.path, new Set());
        if (since !== 0n && record.path !== "" && !this.#isSameDirectory(record)) whole = false;
      }
      if (record.path === "") continue;
      const { parent, name } = split(record.path);
      told.get(parent)?.add(name);
      this.#note(record, found);
    }
    if (whole) this.#findRemoved(told, found);
    return whole;
  }

  #note(record: ScanRecord, found: WorkspaceChanges): void {
    const isDirectory = record.type === "directory";
    const known = this.#known.get(record.path);
    const { parent, name } = split(record.path);
    if (known !== undefined && known.isDirectory !== isDirectory) this.#forget(record.path, found);
    let siblings = this.#children.get(parent);
    if (siblings === undefined) {
      siblings = new Set();
      this.#children.set(parent, siblings);
    }
    siblings.add(name);
    const now = { inode: record.inode, ctimeNs: record.ctimeNs, isDirectory };
    this.#known.set(record.path, now);
    if (isDirectory || record.type === "other") return;
    if (
      known?.inode === record.inode &&
      known.ctimeNs === record.ctimeNs &&
      record.ctimeNs < this.#sinceNs - RACY_NS
    )
      return;
    found.changed.push(record);
  }

  #isSameDirectory(record: ScanRecord): boolean {
    const known = this.#known.get(record.path);
    return known?.isDirectory === true && known.inode === record.inode;
  }

  /** Whatever a told directory was known to hold and does not tell any more is gone. */
  #findRemoved(told: ReadonlyMap<string, ReadonlySet<string>>, found: WorkspaceChanges): void {
    for (const [directory, names] of told) {
      for (const name of [...(this.#children.get(directory) ?? [])]) {
        if (!names.has(name)) this.#forget(join(directory, name), found);
      }
    }
  }

  #forget(path: string, found: WorkspaceChanges): void {
    found.removed.push(path);
    const pending = [path];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      this.#known.delete(next);
      for (const name of this.#children.get(next) ?? []) pending.push(join(next, name));
      this.#children.delete(next);
    }
    const { parent, name } = split(path);
    this.#children.get(parent)?.delete(name);
  }
}

export function fileMode(record: ScanRecord): FileMode {
  if (record.type === "symlink") return "120000";
  return (record.mode & 0o100) === 0 ? "100644" : "100755";
}

function join(directory: string, name: string): string {
  if (directory === "") return name;
  return name === "" ? directory : `${directory}/${name}`;
}

function split(path: string): { parent: string; name: string } {
  const at = path.lastIndexOf("/");
  return at < 0 ? { parent: "", name: path } : { parent: path.slice(0, at), name: path.slice(at + 1) };
}
