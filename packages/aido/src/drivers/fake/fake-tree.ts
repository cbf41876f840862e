import { mkdtempSync } from "node:fs";
import {
  chmod,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import type { Mount } from "../../core/driver/driver.ts";

export type FakeChange = { kind: 1 | 2 | 3; path: string };

export interface FakeEntry {
  /** 1 file, 2 directory, 3 link, 4 other. */
  type: number;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtimeNs: bigint;
  ctimeNs: bigint;
  inode: bigint;
  /** Relative to the asked path, empty for itself. */
  path: string;
  target: string;
}

/**
 * The files of one fake sandbox, kept in a temporary directory that is made at first use. Mounts show the host
 * directories they name. Paths are cut at the root, so `..` cannot leave it; it is no defence against links.
 */
export class FakeTree {
  readonly #mounts: readonly Mount[];
  readonly #watchers = new Set<(change: FakeChange) => void>();
  #base: string | undefined;
  #isDisposed = false;

  constructor(mounts: readonly Mount[], base?: string) {
    this.#base = base;
    this.#mounts = mounts.toSorted((a, b) => b.target.length - a.target.length);
  }

  /** Where a path of the sandbox lies on the host. */
  host(root: string, path: string): string {
    const inside = this.inside(root, path);
    for (const mount of this.#mounts) {
      if (inside === mount.target) return mount.source;
      if (inside.startsWith(`${mount.target}/`)) return join(mount.source, inside.slice(mount.target.length));
    }
    // A program may still be running when its sandbox is removed: nothing is made again for it.
    if (this.#isDisposed) throw Object.assign(new Error("the sandbox is removed"), { code: "ENOENT" });
    this.#base ??= mkdtempSync(join(tmpdir(), "aido-fake-"));
    return join(this.#base, inside);
  }

  /** The absolute path in the sandbox. An absolute `path` is taken from "/" when the root is a directory of a process. */
  inside(root: string, path: string): string {
    return posix.join("/", root, posix.normalize(`/${path}`)).replace(/(.)\/$/, "$1");
  }

  readFile(cwd: string, path: string): Promise<Buffer> {
    return readFile(this.#from(cwd, path));
  }

  async writeFile(cwd: string, path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
    const target = this.#from(cwd, path);
    const existed = await exists(target);
    await mkdir(dirname(target), { recursive: true });
    const temporary = `${target}.aido-${Math.random().toString(36).slice(2)}`;
    await writeFile(temporary, content, { mode });
    await chmod(temporary, mode);
    await rename(temporary, target);
    this.#tell(existed ? 2 : 1, absolute(cwd, path));
  }

  async symlink(cwd: string, path: string, target: string): Promise<void> {
    const link = this.#from(cwd, path);
    await mkdir(dirname(link), { recursive: true });
    await symlink(target, link);
    this.#tell(1, absolute(cwd, path));
  }

  async mkdir(cwd: string, path: string, mode = 0o755): Promise<void> {
    await mkdir(this.#from(cwd, path), { recursive: true, mode });
    this.#tell(1, absolute(cwd, path));
  }

  async move(cwd: string, from: string, to: string): Promise<void> {
    const target = this.#from(cwd, to);
    await lstat(this.#from(cwd, from));
    await mkdir(dirname(target), { recursive: true });
    await rename(this.#from(cwd, from), target);
    this.#tell(3, absolute(cwd, from));
    this.#tell(1, absolute(cwd, to));
  }

  async remove(cwd: string, path: string): Promise<void> {
    const target = this.#from(cwd, path);
    if (!(await exists(target))) return;
    await rm(target, { recursive: true, force: true });
    this.#tell(3, absolute(cwd, path));
  }

  async stat(cwd: string, path: string): Promise<FakeEntry> {
    return entry(this.#from(cwd, path), "");
  }

  /** Sorted by name within a directory; links are not followed. */
  async list(cwd: string, path: string, recursive: boolean): Promise<FakeEntry[]> {
    const base = this.#from(cwd, path);
    const found: FakeEntry[] = [];
    const walk = async (relative: string): Promise<void> => {
      for (const name of (await readdir(join(base, relative))).toSorted()) {
        const inner = relative === "" ? name : `${relative}/${name}`;
        const info = await entry(join(base, inner), inner);
        found.push(info);
        if (recursive && info.type === 2) await walk(inner);
      }
    };
    await walk("");
    return found;
  }

  /** Tells every later change made through this tree beneath `path`, by its path relative to it. */
  watch(cwd: string, path: string, onChange: (change: FakeChange) => void): () => void {
    const base = absolute(cwd, path);
    const prefix = base === "/" ? "/" : `${base}/`;
    const watcher = (change: FakeChange) => {
      if (change.path.startsWith(prefix))
        onChange({ kind: change.kind, path: change.path.slice(prefix.length) });
    };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** The same files on their own, without those of mounts. */
  async copy(mounts: readonly Mount[]): Promise<FakeTree> {
    if (this.#base === undefined) return new FakeTree(mounts);
    const base = mkdtempSync(join(tmpdir(), "aido-fake-"));
    await cp(this.#base, base, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    return new FakeTree(mounts, base);
  }

  async dispose(): Promise<void> {
    this.#watchers.clear();
    this.#isDisposed = true;
    if (this.#base !== undefined) await rm(this.#base, { recursive: true, force: true });
    this.#base = undefined;
  }

  #from(cwd: string, path: string): string {
    return this.host("/", absolute(cwd, path));
  }

  #tell(kind: 1 | 2 | 3, path: string): void {
    for (const watcher of this.#watchers) watcher({ kind, path });
  }
}

/** As a process resolves a path: relative ones from its directory. */
function absolute(cwd: string, path: string): string {
  return posix.resolve("/", cwd, path);
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

async function entry(host: string, path: string): Promise<FakeEntry> {
  const info = await lstat(host, { bigint: true });
  const type = info.isFile() ? 1 : info.isDirectory() ? 2 : info.isSymbolicLink() ? 3 : 4;
  return {
    type,
    mode: Number(info.mode) & 0o7777,
    uid: Number(info.uid),
    gid: Number(info.gid),
    size: Number(info.size),
    mtimeNs: info.mtimeNs,
    ctimeNs: info.ctimeNs,
    inode: info.ino,
    path,
    target: type === 3 ? await readlink(host) : "",
  };
}
