import { AidoError } from "@aido/sdk/protocol";
import { originalPath, shownName } from "./git-names.ts";

const utf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");
export const unreadable = (): AidoError => new AidoError("GIT_HISTORY_FAILED", "The history cannot be read");

export interface ListedFile {
  mode: string;
  id: string;
  /** As `ls-tree -l` tells; undefined without it. */
  size: number | undefined;
  /** latin1 text. */
  path: string;
}

/** `git ls-tree -r -z`, with or without `-l`. */
export function parseTree(output: Buffer): ListedFile[] {
  return output
    .toString("latin1")
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => {
      const match = /^(\d{6}) \w+ ([0-9a-f]{40})(?: +(\d+|-))?\t(.*)$/s.exec(line);
      if (match === null) throw unreadable();
      const [, mode = "", id = "", size, path = ""] = match;
      return { mode, id, size: size === undefined ? undefined : Number(size) || 0, path: originalPath(path) };
    });
}

/**
 * `git diff-tree -p` by path; `raw` is the same diff as `--raw -z`. A line of content never begins with `diff --git`, and only
 * \n ends a line: for `^` \r would too. A path that turned from a file into a link or back has two parts.
 */
export function parsePatch(raw: Buffer, patch: Buffer): Readonly<Record<string, string>> {
  const parts = patch
    .toString("latin1")
    .split(/(?<=\n)(?=diff --git )/)
    .filter((part) => part !== "");
  const tokens = raw.toString("latin1").split("\0");
  const entries: [string, string][] = [];
  for (let at = 0; at + 1 < tokens.length; at += 2) {
    const isTypeChange = / T$/.test(tokens[at] ?? "");
    const text = parts.splice(0, isTypeChange ? 2 : 1).join("");
    entries.push([shownName(originalPath(tokens[at + 1] ?? "")), utf8(text)]);
  }
  if (parts.length > 0) throw new AidoError("GIT_DIFF_FAILED", "The difference cannot be read");
  return Object.fromEntries(entries);
}
