import type { FileEntry, Attributes as WireAttributes } from "ssh2";
import type { FileRecord } from "../core/files/record-reader.ts";
import type { Attributes } from "../core/ssh/disk-deps.ts";

const TYPE_BITS = { file: 0o100000, directory: 0o040000, symlink: 0o120000, other: 0o010000 } as const;
const TYPE_LETTERS = { file: "-", directory: "d", symlink: "l", other: "p" } as const;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function toWireAttributes(record: FileRecord): WireAttributes {
  const seconds = Number(record.mtimeNs / 1_000_000_000n);
  return {
    mode: TYPE_BITS[record.type] | (record.mode & 0o7777),
    uid: record.uid,
    gid: record.gid,
    size: record.size,
    atime: seconds,
    mtime: seconds,
  };
}

/** Absent fields stay as they are. */
export function fromWireAttributes(attributes: Partial<WireAttributes> | undefined): Attributes {
  const { mode, size, mtime } = attributes ?? {};
  return {
    mode: mode === undefined ? undefined : mode & 0o7777,
    size: size === undefined ? undefined : Number(size),
    modifiedAt: mtime === undefined ? undefined : new Date(mtime * 1000),
  };
}

/** An entry of a directory, with the line that clients show for `ls -l`. */
export function toFileEntry(record: FileRecord, name: string): FileEntry {
  return { filename: name, longname: longname(record, name), attrs: toWireAttributes(record) };
}

function longname(record: FileRecord, name: string): string {
  const bits = [..."rwxrwxrwx"].map((letter, at) => ((record.mode >> (8 - at)) & 1 ? letter : "-")).join("");
  const at = new Date(Number(record.mtimeNs / 1_000_000n));
  const two = (value: number, filler: string) => String(value).padStart(2, filler);
  const time = `${two(at.getUTCHours(), "0")}:${two(at.getUTCMinutes(), "0")}`;
  const day = `${MONTHS[at.getUTCMonth()]} ${two(at.getUTCDate(), " ")}`;
  const owner = `${String(record.uid).padEnd(8)} ${String(record.gid).padEnd(8)}`;
  const size = String(record.size).padStart(8);
  return `${TYPE_LETTERS[record.type]}${bits}    1 ${owner} ${size} ${day} ${time} ${name}`;
}
