import { AidoError } from "@aido/sdk/protocol";

export type ScanType = "file" | "directory" | "symlink" | "other";

/** One entry of the workspace as the supervisor's `scan` tells it. Names are bytes, kept as latin1 text. */
export interface ScanRecord {
  type: ScanType;
  mode: number;
  size: number;
  ctimeNs: bigint;
  inode: bigint;
  path: string;
  target: string;
}

const TYPES: Readonly<Record<number, ScanType>> = { 1: "file", 2: "directory", 3: "symlink", 4: "other" };
const FIXED_BYTES = 1 + 4 + 4 + 4 + 8 + 8 + 8 + 8;
const MAX_TEXT_BYTES = 1024 * 1024 + 4096;

/** Reads records from the tool's output. The output is hostile: every length is checked. */
export async function* scanRecords(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ScanRecord> {
  let buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    buffer = buffer.length === 0 ? Buffer.from(chunk) : Buffer.concat([buffer, chunk]);
    let at = 0;
    for (;;) {
      const read = readRecord(buffer, at);
      if (read === undefined) break;
      yield read.record;
      at = read.end;
    }
    buffer = buffer.subarray(at);
  }
  if (buffer.length > 0) throw broken();
}

function readRecord(buffer: Buffer, start: number): { record: ScanRecord; end: number } | undefined {
  let at = start + FIXED_BYTES;
  if (buffer.length < at + 4) return undefined;
  const text = (): string | undefined => {
    if (buffer.length < at + 4) return undefined;
    const length = buffer.readUInt32LE(at);
    if (length > MAX_TEXT_BYTES) throw broken();
    if (buffer.length < at + 4 + length) return undefined;
    const value = buffer.toString("latin1", at + 4, at + 4 + length);
    at += 4 + length;
    return value;
  };
  const path = text();
  const target = path === undefined ? undefined : text();
  if (path === undefined || target === undefined) return undefined;
  const type = TYPES[buffer.readUInt8(start)];
  const size = Number(buffer.readBigUInt64LE(start + 13));
  if (type === undefined || !isPlainPath(path) || !Number.isSafeInteger(size)) throw broken();
  return {
    record: {
      type,
      mode: buffer.readUInt32LE(start + 1),
      size,
      ctimeNs: buffer.readBigUInt64LE(start + 29),
      inode: buffer.readBigUInt64LE(start + 37),
      path,
      target,
    },
    end: at,
  };
}

/** Relative, no empty, `.` or `..` parts: these become names in our own trees and archives. */
export function isPlainPath(path: string): boolean {
  if (path === "") return true;
  if (path.includes("\0")) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function broken(): AidoError {
  return new AidoError(
    "GIT_COMMIT_FAILED",
    "The sandbox's supervisor told something that is not a list of files",
  );
}
