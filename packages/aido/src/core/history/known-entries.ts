import type { ScanRecord, ScanType } from "./scan-records.ts";

export interface KnownEntry {
  type: ScanType;
  inode: bigint;
  ctimeNs: bigint;
  /** False when it may have changed again within the same tick of the kernel's clock after it was read. */
  isSettled: boolean;
}

/** Longest path that is kept, in bytes: what a program can still name. */
const MAX_PATH_BYTES = 4_095;

/** What a history keeps: nothing too deep to be named. */
export function isTracked(path: string): boolean {
  return path.length <= MAX_PATH_BYTES;
}

/** The workspace's entries as they were last seen. */
export class KnownEntries {
  readonly #entries = new Map<string, KnownEntry>();
  readonly #children = new Map<string, Set<string>>();
  /** Paths of files by inode, for those with several names. */
  readonly #names = new Map<bigint, string | Set<string>>();
  /** Change times from here on are news. */
  sinceNs = 0n;
  /** The newest change time seen. */
  newestNs = 0n;

  get size(): number {
    return this.#entries.size;
  }

  get(path: string): KnownEntry | undefined {
    return this.#entries.get(path);
  }

  entries(): IterableIterator<[string, KnownEntry]> {
    return this.#entries.entries();
  }

  isSameDirectory(record: ScanRecord): boolean {
    const known = this.#entries.get(record.path);
    return known?.type === "directory" && known.inode === record.inode;
  }

  /** `isNew`: a file or link that may differ. `replaced`: a directory is in a file's place, or the other way round. */
  note(record: ScanRecord, settledBeforeNs: bigint): { isNew: boolean; replaced: boolean } {
    const { path, type, inode, ctimeNs } = record;
    const known = this.#entries.get(path);
    const replaced =
      known !== undefined &&
      known.type !== type &&
      (known.type === "directory" || type === "directory" || type === "other");
    if (replaced) this.forget(path);
    const isSame = known?.type === type && known.inode === inode && known.ctimeNs === ctimeNs;
    this.put(path, { type, inode, ctimeNs, isSettled: ctimeNs < settledBeforeNs });
    const isContent = type === "file" || type === "symlink";
    return { isNew: isContent && !(isSame && known.isSettled), replaced };
  }

  put(path: string, entry: KnownEntry): void {
    const old = this.#entries.get(path);
    if (old !== undefined && old.inode !== entry.inode) this.#unname(path, old);
    this.#entries.set(path, entry);
    if (entry.ctimeNs > this.newestNs) this.newestNs = entry.ctimeNs;
    const { parent, name } = split(path);
    const siblings = this.#children.get(parent);
    if (siblings === undefined) this.#children.set(parent, new Set([name]));
    else siblings.add(name);
    if (entry.type === "file") this.#name(path, entry.inode);
  }

  /** The entry and all beneath it. */
  forget(path: string): void {
    const pending = [path];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const entry = this.#entries.get(next);
      if (entry !== undefined) this.#unname(next, entry);
      this.#entries.delete(next);
      for (const name of this.#children.get(next) ?? []) pending.push(`${next}/${name}`);
      this.#children.delete(next);
    }
    const { parent, name } = split(path);
    this.#children.get(parent)?.delete(name);
  }

  /** Whatever a told directory was known to hold and does not tell any more. */
  missing(told: ReadonlyMap<string, ReadonlySet<string>>): string[] {
    const gone: string[] = [];
    for (const [directory, names] of told) {
      for (const name of this.#children.get(directory) ?? []) {
        if (!names.has(name)) gone.push(directory === "" ? name : `${directory}/${name}`);
      }
    }
    return gone;
  }

  /** Other names of the same file: what is written through one is seen through all. */
  otherNames(record: ScanRecord): string[] {
    const names = this.#names.get(record.inode);
    return names instanceof Set ? [...names].filter((path) => path !== record.path) : [];
  }

  clear(): void {
    this.#entries.clear();
    this.#children.clear();
    this.#names.clear();
    this.sinceNs = 0n;
    this.newestNs = 0n;
  }

  #name(path: string, inode: bigint): void {
    const names = this.#names.get(inode);
    if (names === undefined) this.#names.set(inode, path);
    else if (names instanceof Set) names.add(path);
    else if (names !== path) this.#names.set(inode, new Set([names, path]));
  }

  #unname(path: string, { inode }: KnownEntry): void {
    const names = this.#names.get(inode);
    if (names instanceof Set) names.delete(path);
    else if (names === path) this.#names.delete(inode);
  }
}

function split(path: string): { parent: string; name: string } {
  const at = path.lastIndexOf("/");
  return at < 0 ? { parent: "", name: path } : { parent: path.slice(0, at), name: path.slice(at + 1) };
}
