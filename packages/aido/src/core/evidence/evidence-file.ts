import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { AidoError, type EvidenceEntry, isAidoError } from "@aido/sdk/protocol";
import type { DataDir } from "../data-dir.ts";
import type { EvidenceHead } from "../store/store.ts";
import { GENESIS, hashOf, parseLine, toLine } from "./evidence-line.ts";

/** What happened, not yet tied to what happened before. */
export type UnchainedEntry = Omit<EvidenceEntry, "seq" | "prev" | "hash">;

const WRITING = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;
/** More than a process that died can have left; beyond that nothing of the end is taken for its own. */
const MAX_TAIL_BYTES = 64 * 1024 ** 2;

/** Of a pipe nothing is waited for, and no link is followed. Raises EVIDENCE_BROKEN for what is no file. */
export function openLog(sandboxId: string, path: string, flags: number): number {
  let file: number;
  try {
    file = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600);
  } catch (thrown) {
    const { code = "" } = thrown as NodeJS.ErrnoException;
    throw ["ELOOP", "EISDIR", "ENXIO"].includes(code) ? replaced(sandboxId, path, thrown) : thrown;
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw replaced(sandboxId, path);
}

function replaced(sandboxId: string, path: string, cause?: unknown): AidoError {
  return new AidoError(
    "EVIDENCE_BROKEN",
    `The evidence of sandbox ${sandboxId} was replaced by what is no file`,
    {
      hint: `Look at ${path}: nothing of aido's own puts it there.`,
      details: { id: sandboxId, path },
      cause,
    },
  );
}

/**
 * One sandbox's log. Everything here is synchronous, because it runs while the store keeps every other writer out.
 */
export class EvidenceFile {
  readonly #dataDir: DataDir;
  readonly #sandboxId: string;

  constructor(dataDir: DataDir, sandboxId: string) {
    this.#dataDir = dataDir;
    this.#sandboxId = sandboxId;
  }

  get archived(): string {
    return join(this.#dataDir.evidence, `${this.#sandboxId}.log`);
  }

  /** Where the log is now: in the sandbox's directory, or in the archive once that is gone. */
  get path(): string {
    if (existsSync(this.archived)) return this.archived;
    return existsSync(this.#dataDir.sandbox(this.#sandboxId))
      ? this.#dataDir.eventsLog(this.#sandboxId)
      : this.archived;
  }

  /** Appends each entry to the end of the chain, all of them or none. */
  append(head: EvidenceHead | undefined, entries: readonly UnchainedEntry[]): EvidenceHead {
    const path = this.path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const file = openLog(this.#sandboxId, path, WRITING);
    try {
      let { seq, hash } = recover(file, head ?? { seq: 0, hash: GENESIS, bytes: 0 });
      let lines = "";
      for (const unchained of entries) {
        const entry = { ...unchained, seq: seq + 1, prev: hash };
        seq = entry.seq;
        hash = hashOf(entry);
        lines += toLine({ ...entry, hash });
      }
      writeAll(file, Buffer.from(lines));
      return { seq, hash, bytes: fstatSync(file).size };
    } finally {
      closeSync(file);
    }
  }

  /** Takes over what a process that died left at the end of the log. */
  settle(head: EvidenceHead | undefined): EvidenceHead | undefined {
    if (head === undefined || !existsSync(this.path)) return undefined;
    const file = openLog(this.#sandboxId, this.path, WRITING);
    try {
      return recover(file, head);
    } finally {
      closeSync(file);
    }
  }

  archive(): void {
    const from = this.#dataDir.eventsLog(this.#sandboxId);
    if (!existsSync(from) || existsSync(this.archived)) return;
    mkdirSync(this.#dataDir.evidence, { recursive: true, mode: 0o700 });
    this.#sync(from);
    renameSync(from, this.archived);
  }

  /** What was put in its place is kept for whoever verifies, and keeps no sandbox from being destroyed. */
  #sync(path: string): void {
    let file: number;
    try {
      file = openLog(this.#sandboxId, path, constants.O_RDONLY);
    } catch (thrown) {
      if (isAidoError(thrown, "EVIDENCE_BROKEN")) return;
      throw thrown;
    }
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
}

/**
 * A process that died between writing a line and telling the store leaves bytes after the known end. Whole lines
 * that continue the chain are taken over; a torn last line is cut off; anything else stays for the verifier to find.
 */
function recover(file: number, head: EvidenceHead): EvidenceHead {
  const { size } = fstatSync(file);
  if (size <= head.bytes) return head;
  const isWhole = size - head.bytes <= MAX_TAIL_BYTES;
  const tail = Buffer.alloc(isWhole ? size - head.bytes : MAX_TAIL_BYTES);
  readSync(file, tail, 0, tail.length, head.bytes);
  const wholeBytes = tail.lastIndexOf(0x0a) + 1;
  if (isWhole && wholeBytes < tail.length) ftruncateSync(file, head.bytes + wholeBytes);
  let end = head;
  for (const line of tail.subarray(0, wholeBytes).toString("utf8").split("\n")) {
    const entry = parseLine(line);
    const isNext = entry?.seq === end.seq + 1 && entry.prev === end.hash && entry.hash === hashOf(entry);
    if (entry === undefined || !isNext) break;
    end = { seq: entry.seq, hash: entry.hash, bytes: end.bytes + Buffer.byteLength(line) + 1 };
  }
  return end;
}

/** What does not fit is taken back whole, so that a full disk leaves no torn entry. */
function writeAll(file: number, lines: Buffer): void {
  const { size } = fstatSync(file);
  try {
    for (let written = 0; written < lines.length; ) written += writeSync(file, lines, written);
  } catch (thrown) {
    ftruncateSync(file, size);
    throw thrown;
  }
}
