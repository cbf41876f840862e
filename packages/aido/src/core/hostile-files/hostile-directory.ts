import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, opendir } from "node:fs/promises";

// Linux: opens nothing but a reference, so that looking at a device or a pipe has no effect.
const O_PATH = 0o10000000;
const DIRECTORY_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export type HostileEntry =
  | { type: "file"; stats: Stats; handle: FileHandle }
  | { type: "directory"; directory: HostileDirectory }
  | { type: "other"; kind: "symlink" | "pipe" | "socket" | "device" };

/**
 * A directory that a sandbox may be changing right now. Everything is reached from an open descriptor, one name
 * at a time and never through a link, so what is read lies in this directory whatever the sandbox renames meanwhile.
 */
export class HostileDirectory implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** `path` itself is aido's own, but its last part is not followed either. */
  static async open(path: string): Promise<HostileDirectory> {
    return new HostileDirectory(await open(path, DIRECTORY_ITSELF));
  }

  /** At most `limit` names, as bytes: a name need not be text. */
  async names(limit: number): Promise<{ names: readonly Buffer[]; more: boolean }> {
    const names: Buffer[] = [];
    const directory = await opendir(`/proc/self/fd/${this.#handle.fd}`, {
      encoding: "buffer" as BufferEncoding,
    });
    for await (const entry of directory) {
      if (names.length >= limit) return { names, more: true };
      names.push(entry.name as unknown as Buffer);
    }
    return { names: names.sort(Buffer.compare), more: false };
  }

  /** What every entry is, none of them opened or followed. */
  async *stats(): AsyncGenerator<{ name: Buffer; stats: Stats }> {
    const self = `/proc/self/fd/${this.#handle.fd}`;
    const directory = await opendir(self, { encoding: "buffer" as BufferEncoding });
    for await (const entry of directory) {
      const name = entry.name as unknown as Buffer;
      const stats = await lstat(Buffer.concat([Buffer.from(`${self}/`), name])).catch(goneAsUndefined);
      if (stats !== undefined) yield { name, stats };
    }
  }

  /** Undefined when it is gone or no directory any more. */
  async directory(name: Buffer): Promise<HostileDirectory | undefined> {
    const path = Buffer.concat([Buffer.from(`/proc/self/fd/${this.#handle.fd}/`), name]);
    const handle = await open(path, DIRECTORY_ITSELF).catch(goneAsUndefined);
    return handle === undefined ? undefined : new HostileDirectory(handle);
  }

  /** Undefined when it is gone. What is open in the answer is the caller's to close. */
  async entry(name: Buffer): Promise<HostileEntry | undefined> {
    const path = Buffer.concat([Buffer.from(`/proc/self/fd/${this.#handle.fd}/`), name]);
    const reference = await open(path, O_PATH | constants.O_NOFOLLOW).catch(
      (thrown: NodeJS.ErrnoException) => {
        if (thrown.code === "ENOENT") return undefined;
        throw thrown;
      },
    );
    if (reference === undefined) return undefined;
    try {
      const stats = await reference.stat();
      const self = `/proc/self/fd/${reference.fd}`;
      if (stats.isDirectory()) {
        const handle = await open(self, constants.O_RDONLY | constants.O_DIRECTORY);
        return { type: "directory", directory: new HostileDirectory(handle) };
      }
      if (stats.isFile()) {
        // Opened through the reference: it is this very file, whatever the name stands for by now.
        const handle = await open(self, constants.O_RDONLY | constants.O_NONBLOCK);
        return { type: "file", stats, handle };
      }
      return { type: "other", kind: kindOf(stats) };
    } finally {
      await reference.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

function kindOf(stats: Stats): "symlink" | "pipe" | "socket" | "device" {
  if (stats.isSymbolicLink()) return "symlink";
  if (stats.isFIFO()) return "pipe";
  return stats.isSocket() ? "socket" : "device";
}

function goneAsUndefined(thrown: NodeJS.ErrnoException): undefined {
  if (["ENOENT", "ENOTDIR", "ELOOP"].includes(thrown.code ?? "")) return undefined;
  throw thrown;
}
