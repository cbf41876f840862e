import type { FileInfo } from "@aido/sdk/protocol";

const TYPE_LETTER = { file: "-", directory: "d", symlink: "l", other: "?" } as const;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The long form of `ls -la`, so that images without `ls` list directories too. */
export function formatListing(entries: readonly FileInfo[]): string {
  const rows = entries.map((entry) => ({
    mode: TYPE_LETTER[entry.type] + permissions(entry.mode),
    uid: String(entry.uid),
    gid: String(entry.gid),
    size: String(entry.size),
    date: listingDate(entry.modifiedAt),
    name: entry.target === undefined ? entry.path : `${entry.path} -> ${entry.target}`,
  }));
  const width = (field: "uid" | "gid" | "size") => Math.max(0, ...rows.map((row) => row[field].length));
  const [uid, gid, size] = [width("uid"), width("gid"), width("size")];
  const lines = rows.map(
    (row) =>
      `${row.mode} ${row.uid.padEnd(uid)} ${row.gid.padEnd(gid)} ${row.size.padStart(size)} ${row.date} ${row.name}`,
  );
  return [`total ${entries.length}`, ...lines, ""].join("\n");
}

function permissions(mode: number): string {
  const triple = (bits: number) => `${bits & 4 ? "r" : "-"}${bits & 2 ? "w" : "-"}${bits & 1 ? "x" : "-"}`;
  return triple((mode >> 6) & 7) + triple((mode >> 3) & 7) + triple(mode & 7);
}

function listingDate(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${MONTHS[date.getUTCMonth()]} ${two(date.getUTCDate())} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
}
