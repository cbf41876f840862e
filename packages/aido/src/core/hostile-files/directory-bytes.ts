import { lstat } from "node:fs/promises";
import { HostileDirectory } from "./hostile-directory.ts";

const BLOCK_BYTES = 512;
/** Each level holds two descriptors of this process. */
const MAX_DEPTH = 64;
/** Files with several names that are counted once; of more, every name counts. */
const MAX_LINKED = 100_000;

export interface DirectoryBytes {
  bytes: number;
  /** False when a part could not be looked into: it is not this user's to read, or very deep. */
  isWhole: boolean;
}

/**
 * What a file or a directory of a sandbox takes on this machine's disk. The sandbox may be changing it right now:
 * nothing is opened but directories, and no link is followed.
 */
export async function directoryBytes(path: string, signal?: AbortSignal): Promise<DirectoryBytes> {
  const stats = await lstat(path);
  const walk = new Walk(stats.dev, signal);
  walk.bytes = stats.blocks * BLOCK_BYTES;
  if (stats.isDirectory()) {
    await using root = await HostileDirectory.open(path);
    await walk.directory(root, 1);
  }
  return { bytes: walk.bytes, isWhole: walk.isWhole };
}

class Walk {
  bytes = 0;
  isWhole = true;
  readonly #device: number;
  readonly #signal: AbortSignal | undefined;
  readonly #linked = new Set<number>();

  constructor(device: number, signal: AbortSignal | undefined) {
    this.#device = device;
    this.#signal = signal;
  }

  async directory(directory: HostileDirectory, depth: number): Promise<void> {
    for await (const { name, stats } of directory.stats()) {
      this.#signal?.throwIfAborted();
      if (stats.dev !== this.#device) continue;
      if (!stats.isDirectory() && stats.nlink > 1 && this.#isKnown(stats.ino)) continue;
      this.bytes += stats.blocks * BLOCK_BYTES;
      if (stats.isDirectory()) await this.#enter(directory, name, depth);
    }
  }

  async #enter(parent: HostileDirectory, name: Buffer, depth: number): Promise<void> {
    if (depth >= MAX_DEPTH) {
      this.isWhole = false;
      return;
    }
    try {
      await using child = await parent.directory(name);
      if (child !== undefined) await this.directory(child, depth + 1);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EACCES") throw thrown;
      this.isWhole = false;
    }
  }

  #isKnown(inode: number): boolean {
    if (this.#linked.has(inode)) return true;
    if (this.#linked.size < MAX_LINKED) this.#linked.add(inode);
    return false;
  }
}
