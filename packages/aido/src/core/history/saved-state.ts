import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FileMode } from "./git-objects.ts";
import type { KnownEntries } from "./known-entries.ts";
import { isPlainPath, type ScanType } from "./scan-records.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

const FILE = "workspace.state";
const FIRST = "aido workspace 1";
const LETTERS: Readonly<Record<ScanType, string>> = { file: "f", directory: "d", symlink: "l", other: "o" };
const TYPES = new Map(Object.entries(LETTERS).map(([type, letter]) => [letter, type as ScanType]));

/**
 * What is known of a workspace, kept for the next process so that it need not read every file again. Only a help:
 * each entry counts as long as the file's inode and change time are the same.
 */
export function saveState(directory: string, known: KnownEntries, tree: WorkspaceTree): void {
  const lines = [`${FIRST} ${known.sinceNs} ${known.newestNs} ${tree.writtenId("") ?? "-"}`];
  for (const [path, { type, inode, ctimeNs, isSettled }] of known.entries()) {
    const file = type === "directory" || type === "other" ? undefined : tree.get(path);
    const isSure = isSettled && (file !== undefined || type === "directory" || type === "other");
    const head = `${LETTERS[type]}${isSure ? 1 : 0} ${inode.toString(36)} ${ctimeNs.toString(36)}`;
    const id = file?.id ?? (type === "directory" ? tree.writtenId(path) : undefined);
    lines.push(`${head} ${file?.mode ?? "-"} ${id ?? "-"} ${path}`);
  }
  const temporary = join(directory, `new-${randomBytes(6).toString("hex")}`);
  writeFileSync(temporary, `${lines.join("\0")}\0`, { encoding: "latin1", mode: 0o600 });
  renameSync(temporary, join(directory, FILE));
}

/** False when there is nothing that can be used; both are then empty. */
export function loadState(directory: string, known: KnownEntries, tree: WorkspaceTree): boolean {
  known.clear();
  tree.clear();
  let text: string;
  try {
    text = readFileSync(join(directory, FILE), "latin1");
  } catch {
    return false;
  }
  const lines = text.split("\0");
  const head = /^aido workspace 1 (\d+) (\d+) ([0-9a-f]{40}|-)$/.exec(lines.shift() ?? "");
  const written = new Map<string, string>();
  if (head === null || lines.pop() !== "" || !lines.every((line) => take(line, known, tree, written))) {
    known.clear();
    tree.clear();
    return false;
  }
  known.sinceNs = BigInt(head[1] ?? 0);
  known.newestNs = BigInt(head[2] ?? 0);
  // After all files are in: a file that comes makes its directory a new one.
  for (const [path, id] of written) tree.setWritten(path, id);
  if (head[3] !== undefined && head[3] !== "-") tree.setWritten("", head[3]);
  return true;
}

function take(line: string, known: KnownEntries, tree: WorkspaceTree, written: Map<string, string>): boolean {
  const match =
    /^([fdlo])([01]) ([0-9a-z]+) ([0-9a-z]+) (100644|100755|120000|-) ([0-9a-f]{40}|-) (.+)$/s.exec(line);
  if (match === null) return false;
  const [, letter = "", settled, inode = "", ctime = "", mode = "-", id = "-", path = ""] = match;
  const type = TYPES.get(letter);
  if (type === undefined || !isPlainPath(path)) return false;
  known.put(path, { type, inode: fromBase36(inode), ctimeNs: fromBase36(ctime), isSettled: settled === "1" });
  if (type === "directory" && id !== "-") written.set(path, id);
  if (mode !== "-") tree.set(path, { mode: mode as FileMode, id });
  return true;
}

function fromBase36(text: string): bigint {
  let value = 0n;
  for (const digit of text) value = value * 36n + BigInt(Number.parseInt(digit, 36));
  return value;
}
