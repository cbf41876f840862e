import { AidoError } from "@aido/sdk/protocol";

export type ScanType = "file" | "directory" | "symlink" | "other";

/** One entry of the workspace as the supervisor tells it. Names are bytes, kept as latin1 text. */
export interface ScanRecord {
  type: ScanType;
  mode: number;
  size: number;
  ctimeNs: bigint;
  inode: bigint;
  path: string;
  target: string;
  /** When it came with the record. */
  content?: Buffer;
}

const TYPES: Readonly<Record<number, ScanType>> = { 1: "file", 2: "directory", 3: "symlink", 4: "other" };
const FIXED_BYTES = 1 + 4 + 4 + 4 + 8 + 8 + 8 + 8;
const MAX_TEXT_BYTES = 1024 * 1024 + 4096;
/** Both bound what a sandbox can make the host hold and hear. */
const MAX_RECORDS = 500_000;
const MAX_SCAN_BYTES = 512 * 1024 * 1024;

/** Reads records from the tool's output. The output is hostile: every length is checked. */
export async function* scanRecords(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ScanRecord> {
  let buffer = Buffer.alloc(0);
  let bytes = 0;
  let count = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MAX_SCAN_BYTES) throw tooLarge();
    buffer = buffer.length === 0 ? Buffer.from(chunk) : Buffer.concat([buffer, chunk]);
    let at = 0;
    for (;;) {
      const read = readRecord(buffer, at);
      if (read === undefined) break;
      count += 1;
      if (count > MAX_RECORDS) throw tooLarge();
      yield read.record;
      at = read.end;
    }
    buffer = buffer.subarray(at);
  }
  if (buffer.length > 0) throw brokenScan();
}

/** The record that begins at `start`; undefined when it is not all there yet. */
export function readRecord(buffer: Buffer, start: number): { record: ScanRecord; end: number } | undefined {
  const texts = start + FIXED_BYTES;
  const path = readText(buffer, texts);
  const target = path === undefined ? undefined : readText(buffer, path.end);
  if (path === undefined || target === undefined) return undefined;
  const type = TYPES[buffer.readUInt8(start)];
  const size = Number(buffer.readBigUInt64LE(start + 13));
  if (type === undefined || !isPlainPath(path.text) || !Number.isSafeInteger(size)) throw brokenScan();
  return {
    record: {
      type,
      mode: buffer.readUInt32LE(start + 1),
      size,
      ctimeNs: buffer.readBigUInt64LE(start + 29),
      inode: buffer.readBigUInt64LE(start + 37),
      path: path.text,
      target: target.text,
    },
    end: target.end,
  };
}

export function readText(buffer: Buffer, at: number): { text: string; end: number } | undefined {
  if (buffer.length < at + 4) return undefined;
  const length = buffer.readUInt32LE(at);
  if (length > MAX_TEXT_BYTES) throw brokenScan();
  const end = at + 4 + length;
  return buffer.length < end ? undefined : { text: buffer.toString("latin1", at + 4, end), end };
}

/** Relative, no empty, `.` or `..` parts: these become names in our own trees and archives. */
export function isPlainPath(path: string): boolean {
  if (path === "") return true;
  if (path.includes("\0")) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

export function brokenScan(): AidoError {
  return new AidoError(
    "GIT_COMMIT_FAILED",
    "The sandbox's supervisor told something that is not a list of files",
  );
}

function tooLarge(): AidoError {
  return new AidoError(
    "GIT_COMMIT_FAILED",
    `The workspace is too large for a history (more than ${MAX_RECORDS} entries, or very long paths)`,
    { hint: "Remove what need not be kept, or create the sandbox without history." },
  );
}
