import { createHash, type Hash } from "node:crypto";
import type { Stats } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { HostileDirectory } from "../hostile-files/hostile-directory.ts";

export interface CaptureLimits {
  files: number;
  bytes: number;
  depth: number;
}

export const CAPTURE_LIMITS: CaptureLimits = { files: 10_000, bytes: 4 * 1024 ** 3, depth: 32 };

export interface CapturedContent {
  path: string;
  size: number;
  sha256: string;
}

export interface Captured {
  /** Relative to the outputs, sorted. */
  files: readonly string[];
  bytes: number;
  /** Of the first of them what they hold, as copied. */
  contents: readonly CapturedContent[];
  /** What was left out, at most 100 of them, each with the reason. */
  skipped: readonly { path: string; reason: string }[];
  skippedTotal: number;
  /** Names that aido uses itself, and what the sandbox's files of that name are called here. */
  renamed: readonly { path: string; as: string }[];
}

/** Top-level names of `outputs/` that only aido writes. */
const OWN_NAMES = new Set(["stdout.log", "stderr.log", "summary.json", "steps"]);
const NO_NAMES: ReadonlySet<string> = new Set();
const MAX_NOTED = 100;
const MAX_HASHED = 256;
const CHUNK_BYTES = 262_144;
const BLOCK_BYTES = 512;
const ZEROS = Buffer.alloc(CHUNK_BYTES);

/**
 * Copies the regular files of a directory that a sandbox wrote. Links, pipes, sockets and devices are noted,
 * never followed or opened. A file with several names is copied per name: a hard link cannot cross a mount, so
 * its other names lie in the same directory and its content is the sandbox's own.
 */
export async function captureOutputs(
  from: string,
  to: string,
  options: { limits?: CaptureLimits | undefined; signal?: AbortSignal | undefined } = {},
): Promise<Captured> {
  const capture = new Capture(options.limits ?? CAPTURE_LIMITS, options.signal);
  await using source = await HostileDirectory.open(from);
  await mkdir(to, { recursive: true });
  await capture.directory(source, { target: Buffer.from(to), path: "", depth: 0 });
  return capture.result();
}

interface Place {
  target: Buffer;
  /** Relative to the outputs; bytes that are not text are shown as replacement characters. */
  path: string;
  depth: number;
}

interface Copy {
  source: FileHandle;
  target: FileHandle;
  hash: Hash | undefined;
}

class Capture {
  readonly #limits: CaptureLimits;
  readonly #signal: AbortSignal | undefined;
  readonly #files: string[] = [];
  readonly #contents: CapturedContent[] = [];
  readonly #skipped: { path: string; reason: string }[] = [];
  readonly #renamed: { path: string; as: string }[] = [];
  #skippedTotal = 0;
  #entries = 0;
  #bytes = 0;

  constructor(limits: CaptureLimits, signal: AbortSignal | undefined) {
    this.#limits = limits;
    this.#signal = signal;
  }

  result(): Captured {
    return {
      files: this.#files.sort(),
      bytes: this.#bytes,
      contents: this.#contents,
      skipped: this.#skipped,
      skippedTotal: this.#skippedTotal,
      renamed: this.#renamed,
    };
  }

  async directory(source: HostileDirectory, place: Place): Promise<void> {
    const { names, more } = await source.names(this.#limits.files - this.#entries);
    this.#entries += names.length;
    if (more) this.#skip(place.path || ".", `more than ${this.#limits.files} entries`);
    const taken = place.depth === 0 ? new Set(names.map((name) => name.toString())) : NO_NAMES;
    for (const name of names) {
      this.#signal?.throwIfAborted();
      await this.#entry(source, name, this.#placeOf(name, place, taken));
    }
  }

  /** `taken` are the sandbox's own names beside it, none of which another file may take. */
  #placeOf(name: Buffer, place: Place, taken: ReadonlySet<string>): Place {
    const text = name.toString();
    const path = place.path === "" ? text : `${place.path}/${text}`;
    if (place.depth > 0 || !OWN_NAMES.has(text)) {
      return { target: joinBytes(place.target, name), path, depth: place.depth + 1 };
    }
    let as = `task-${text}`;
    while (taken.has(as)) as = `task-${as}`;
    this.#renamed.push({ path: text, as });
    return { target: joinBytes(place.target, Buffer.from(as)), path: as, depth: place.depth + 1 };
  }

  async #entry(source: HostileDirectory, name: Buffer, place: Place): Promise<void> {
    try {
      const entry = await source.entry(name);
      if (entry === undefined) return;
      if (entry.type === "other") return this.#skip(place.path, entry.kind);
      if (entry.type === "directory") {
        await using directory = entry.directory;
        if (place.depth > this.#limits.depth)
          return this.#skip(place.path, `deeper than ${this.#limits.depth} directories`);
        await mkdir(place.target, { recursive: true });
        return await this.directory(directory, place);
      }
      try {
        await this.#file(entry.handle, entry.stats, place);
      } finally {
        await entry.handle.close();
      }
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException;
      if (code === undefined || this.#signal?.aborted) throw thrown;
      this.#skip(place.path, code === "ENOSPC" ? "no space left on the disk" : code);
    }
  }

  async #file(source: FileHandle, stats: Stats, place: Place): Promise<void> {
    if (stats.size > this.#limits.bytes - this.#bytes) {
      return this.#skip(place.path, `more than ${this.#limits.bytes} bytes in all`);
    }
    // The set-id bits and the sandbox's owner stay behind.
    const target = await open(place.target, "w", (stats.mode & 0o111) === 0 ? 0o644 : 0o755);
    const hash = this.#contents.length < MAX_HASHED ? createHash("sha256") : undefined;
    try {
      const size = await this.#copy({ source, target, hash }, stats);
      this.#bytes += size;
      if (hash !== undefined) this.#contents.push({ path: place.path, size, sha256: hash.digest("hex") });
    } catch (thrown) {
      await rm(place.target, { force: true });
      throw thrown;
    } finally {
      await target.close();
    }
    this.#files.push(place.path);
  }

  /** At most as much as it had, so that a file that grows meanwhile has an end. Holes stay holes. */
  async #copy({ source, target, hash }: Copy, { size, blocks }: Stats): Promise<number> {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(size, 1)));
    const isSparse = blocks * BLOCK_BYTES < size;
    let copied = 0;
    while (copied < size) {
      this.#signal?.throwIfAborted();
      const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, size - copied), copied);
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      hash?.update(chunk);
      if (!isSparse || !ZEROS.subarray(0, bytesRead).equals(chunk)) {
        await writeAll(target, chunk, copied);
      }
      copied += bytesRead;
    }
    if (isSparse) await target.truncate(copied);
    return copied;
  }

  #skip(path: string, reason: string): void {
    this.#skippedTotal++;
    if (this.#skipped.length < MAX_NOTED) this.#skipped.push({ path, reason });
  }
}

/** A disk that gets full takes the first part of a write without a word, and refuses the next one. */
async function writeAll(target: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < chunk.length; ) {
    at += (await target.write(chunk, at, chunk.length - at, position + at)).bytesWritten;
  }
}

function joinBytes(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, Buffer.from("/"), name]);
}
