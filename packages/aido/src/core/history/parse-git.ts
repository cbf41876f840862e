import type { HistoryEntry } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";

const utf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");

/** `git log` with the format of SandboxHistory and NUL-separated names. */
export function parseLog(output: Buffer): readonly HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  for (const block of output.toString("latin1").split("\x01").slice(1)) {
    const [commitId = "", seconds = "", body = "", ...names] = block.split("\0");
    const at = /^Timestamp: (\S+)$/m.exec(body)?.[1];
    entries.push({
      commitId,
      execId: /^Execution ID: (\S+)$/m.exec(body)?.[1] ?? "unknown",
      at: at === undefined ? new Date(Number(seconds) * 1000) : new Date(at),
      message: utf8(body.split("\n")[0] ?? ""),
      files: names.map((name) => utf8(name.replace(/^\n+/, ""))).filter((name) => name !== ""),
    });
  }
  return entries;
}

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
      if (match === null) throw new AidoError("GIT_HISTORY_FAILED", "The history cannot be read");
      const [, mode = "", id = "", size, path = ""] = match;
      return { mode, id, size: size === undefined ? undefined : Number(size) || 0, path };
    });
}

/** Splits `git diff-tree -p` by file. A line of content never begins with `diff --git`. */
export function parsePatch(names: readonly string[], patch: Buffer): Readonly<Record<string, string>> {
  const parts = patch
    .toString("latin1")
    .split(/^(?=diff --git )/m)
    .filter((part) => part !== "");
  return Object.fromEntries(names.map((name, index) => [utf8(name), utf8(parts[index] ?? "")]));
}
