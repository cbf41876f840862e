import type { FileInfo, FileType } from "@aido/sdk/protocol";
import { FieldReader } from "../supervisor/frame-fields.ts";
import { protocolError } from "../supervisor/frames.ts";

const TYPES: Readonly<Record<number, FileType>> = { 1: "file", 2: "directory", 3: "symlink", 4: "other" };
const FIXED_BYTES = 1 + 4 * 3 + 8 * 4;
const MAX_TEXT_BYTES = 1_048_576;

/** One entry as the builtin tools tell it. Names are bytes inside; here they are read as UTF-8. */
export interface FileRecord {
  type: FileType;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtimeNs: bigint;
  ctimeNs: bigint;
  inode: bigint;
  path: string;
  target: string;
}

/** Records follow each other without a frame. Holds at most one that is not complete; lengths are checked first. */
export async function* readRecords(
  stdout: AsyncIterable<Uint8Array>,
): AsyncGenerator<FileRecord, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stdout) {
    rest =
      rest.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
        : Buffer.concat([rest, chunk]);
    for (let size = recordBytes(rest); size !== undefined; size = recordBytes(rest)) {
      yield toRecord(new FieldReader(rest.subarray(0, size)));
      rest = rest.subarray(size);
    }
  }
  if (rest.length > 0) throw protocolError("a file record is cut off");
}

/** Undefined while the record is not complete. */
function recordBytes(bytes: Buffer): number | undefined {
  const path = textBytes(bytes, FIXED_BYTES);
  const target = path === undefined ? undefined : textBytes(bytes, FIXED_BYTES + path);
  if (path === undefined || target === undefined) return undefined;
  const size = FIXED_BYTES + path + target;
  return bytes.length >= size ? size : undefined;
}

function textBytes(bytes: Buffer, at: number): number | undefined {
  if (bytes.length < at + 4) return undefined;
  const length = bytes.readUInt32LE(at);
  if (length > MAX_TEXT_BYTES) throw protocolError("a file's name is too long");
  return 4 + length;
}

function toRecord(fields: FieldReader): FileRecord {
  const type = TYPES[fields.u8()];
  if (type === undefined) throw protocolError("a file is of no known type");
  return {
    type,
    mode: fields.u32(),
    uid: fields.u32(),
    gid: fields.u32(),
    size: fields.u64(),
    mtimeNs: fields.bigU64(),
    ctimeNs: fields.bigU64(),
    inode: fields.bigU64(),
    path: fields.str(),
    target: fields.str(),
  };
}

export function toFileInfo(record: FileRecord, path: string): FileInfo {
  return {
    path,
    type: record.type,
    size: record.size,
    mode: record.mode & 0o7777,
    uid: record.uid,
    gid: record.gid,
    modifiedAt: new Date(Number(record.mtimeNs / 1_000_000n)),
    target: record.type === "symlink" ? record.target : undefined,
  };
}
