import { posix } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { Git } from "../merge/git.ts";

export interface TreeFile {
  readonly path: string;
  readonly mode: "100644" | "100755" | "120000";
  /** The object that holds it. */
  readonly id: string;
  readonly bytes: number;
}

export interface ProjectTree {
  readonly commit: string;
  readonly files: readonly TreeFile[];
  readonly leftOut: readonly string[];
}

const LIMITS = { files: 200_000, fileBytes: 256 * 1024 * 1024, bytes: 2 * 1024 ** 3 };
const MOST_LIST_BYTES = 256 * 1024 * 1024;
const MOST_PATH_BYTES = 4000;

/**
 * The files of a commit, from git's objects alone: no checkout, filter, attribute or hook has a part in it. What no image
 * should have is left out: modules, names that git itself would not check out, and files above the limit.
 */
export async function readProjectTree(git: Git, commit: string, limits = LIMITS): Promise<ProjectTree> {
  const { stdout } = await git.run(["ls-tree", "-r", "-z", "-l", "--full-tree", commit], {
    code: "VALIDATION_ERROR",
    maxBytes: MOST_LIST_BYTES,
  });
  const files = new Map<string, TreeFile>();
  const leftOut: string[] = [];
  for (const line of split(stdout)) {
    const [, mode = "", id = "", size = "", name] = LINE.exec(line) ?? [];
    const path = name === undefined ? undefined : toText(name);
    if (path === undefined || !isPlain(path) || files.has(path)) leftOut.push(name ?? line);
    else if (mode !== "100644" && mode !== "100755" && mode !== "120000") leftOut.push(path);
    else if (Number(size) > limits.fileBytes) leftOut.push(path);
    else files.set(path, { path, mode, id, bytes: Number(size) });
  }
  for (const path of [...files.keys()].filter((each) => isBelowFile(each, files))) {
    files.delete(path);
    leftOut.push(path);
  }
  const kept = [...files.values()];
  checkSize(kept, limits);
  return { commit, files: kept, leftOut };
}

/** `target` of a link at `path`, by its words alone. */
export function leadsOut(path: string, target: string): boolean {
  if (target === "" || target.includes("\0") || posix.isAbsolute(target)) return true;
  const end = posix.join(posix.dirname(path), target);
  return end === ".." || end.startsWith("../");
}

const LINE = /^(\d{6}) \w+ ([0-9a-f]{40,64}) +(\d+|-)\t(.+)$/s;

function* split(bytes: Buffer): Generator<string> {
  for (const line of bytes.toString("latin1").split("\0")) if (line !== "") yield line;
}

/** Undefined for what is no UTF-8. */
function toText(latin1: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(latin1, "latin1"));
  } catch {
    return undefined;
  }
}

function isPlain(path: string): boolean {
  if (path.startsWith("/") || Buffer.byteLength(path) > MOST_PATH_BYTES) return false;
  return path
    .split("/")
    .every((part) => part !== "" && part !== "." && part !== ".." && !/^\.git$/i.test(part));
}

/** A tree that was made by hand can hold a link and a directory of the same name. */
function isBelowFile(path: string, files: ReadonlyMap<string, TreeFile>): boolean {
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    if (files.has(path.slice(0, at))) return true;
  }
  return false;
}

function checkSize(files: readonly TreeFile[], limits: typeof LIMITS): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (files.length <= limits.files && bytes <= limits.bytes) return;
  throw new AidoError(
    "PAYLOAD_TOO_LARGE",
    `The project has ${files.length} files with ${bytes} bytes; an image takes ${limits.files} with ${limits.bytes}`,
    {
      hint: "Keep large files out of the repository, or clone a part of it in .aimi/Dockerfile.sandbox.",
      details: { files: files.length, bytes },
    },
  );
}
