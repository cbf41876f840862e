import type { Git } from "./git.ts";

const MERGE_LIMIT_MS = 300_000;
const DECODER = new TextDecoder("utf-8");

/** A file that both sides changed in ways that do not go together. */
export interface ConflictingFile {
  path: string;
  /** git's word for it: `contents`, `modify/delete`, `binary` … */
  kinds: readonly string[];
}

export interface MergedTrees {
  /** The merged tree; with conflicts, its files hold both sides between marks. */
  tree: string;
  conflicts: readonly ConflictingFile[];
}

/** Merges two commits without a work tree; only objects are written. */
export async function mergeTrees(git: Git, ours: string, theirs: string): Promise<MergedTrees> {
  const { code, stdout } = await git.run(["merge-tree", "--write-tree", "-z", "--messages", ours, theirs], {
    code: "GIT_MERGE_FAILED",
    answers: [1],
    limitMs: MERGE_LIMIT_MS,
  });
  return parseMerge(stdout, code === 1);
}

/** As `mergeTrees`, for commits that may share no history; only what conflicts. */
export async function findConflicts(
  git: Git,
  ours: string,
  theirs: string,
): Promise<readonly ConflictingFile[]> {
  if (!(await areRelated(git, ours, theirs))) return [{ path: ".", kinds: ["no common history"] }];
  return (await mergeTrees(git, ours, theirs)).conflicts;
}

export async function areRelated(git: Git, ours: string, theirs: string): Promise<boolean> {
  const options = { code: "GIT_MERGE_FAILED", answers: [1] } as const;
  return (await git.run(["merge-base", ours, theirs], options)).code === 0;
}

/**
 * The answer of `merge-tree -z`: the tree; with conflicts the files' stages, and an empty field; then messages, each the number
 * of its paths, the paths, the kind and a text. Paths are the workers' and may be anything but NUL.
 */
export function parseMerge(answer: Buffer, hasConflicts: boolean): MergedTrees {
  const fields = split(answer);
  const tree = fields.shift() ?? "";
  if (!hasConflicts) return { tree, conflicts: [] };
  const kinds = new Map<string, Set<string>>();
  let at = 0;
  for (; at < fields.length && fields[at] !== ""; at += 1) {
    const path = fields[at]?.slice((fields[at] ?? "").indexOf("\t") + 1) ?? "";
    if (!kinds.has(path)) kinds.set(path, new Set());
  }
  at += 1;
  while (at < fields.length) {
    const count = Number(fields[at]);
    if (!Number.isInteger(count) || count < 0 || at + count + 2 >= fields.length) break;
    const paths = fields.slice(at + 1, at + 1 + count);
    const kind = /^CONFLICT \((.+)\)$/.exec(fields[at + 1 + count] ?? "")?.[1];
    if (kind !== undefined) for (const path of paths) kinds.get(path)?.add(kind);
    at += count + 3;
  }
  return { tree, conflicts: [...kinds].map(([path, said]) => ({ path, kinds: [...said] })) };
}

function split(bytes: Buffer): string[] {
  const fields: string[] = [];
  let from = 0;
  for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, from)) {
    fields.push(DECODER.decode(bytes.subarray(from, end)));
    from = end + 1;
  }
  return fields;
}
