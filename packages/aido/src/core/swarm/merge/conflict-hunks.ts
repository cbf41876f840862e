import type { Git } from "./git.ts";

const MOST_FILE_BYTES = 1024 * 1024;
const MOST_HUNKS = 3;
const MOST_LINES = 12;
const MOST_CHARACTERS = 200;

/** The two sides of one place in a file; long ones are cut, `omitted` counts the lines. */
export interface ConflictHunk {
  /** The line of the file where it begins, marks counted. */
  line: number;
  ours: readonly string[];
  theirs: readonly string[];
  omitted: number;
}

export interface ConflictHunks {
  hunks: readonly ConflictHunk[];
  /** Further ones that are not shown. */
  more: number;
}

const NONE: ConflictHunks = { hunks: [], more: 0 };

/** What stands between the marks of a file in a tree that `mergeTrees` made of these two commits. */
export async function readHunks(
  git: Git,
  tree: string,
  path: string,
  sides: { ours: string; theirs: string },
): Promise<ConflictHunks> {
  const options = { code: "GIT_MERGE_FAILED", stdin: `${tree}:${path}\0` } as const;
  const about = await git.line(
    ["cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)", "-z"],
    options,
  );
  const [type, size, id] = about.split(" ");
  // Binary files and those that one side removed have no marks; a name that is no UTF-8 is not found again.
  if (type !== "blob" || id === undefined || !(Number(size) <= MOST_FILE_BYTES)) return NONE;
  const { stdout } = await git.run(["cat-file", "blob", id], { code: "GIT_MERGE_FAILED" });
  if (stdout.includes(0)) return NONE;
  return parseHunks(stdout.toString("utf8"), sides);
}

/** The marks name the commits: no file of theirs can hold the id of the commit it is merged with. */
export function parseHunks(text: string, { ours, theirs }: { ours: string; theirs: string }): ConflictHunks {
  const hunks: ConflictHunk[] = [];
  let more = 0;
  let open: { line: number; sides: [string[], string[]]; side: 0 | 1 } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open === undefined) {
      if (line.startsWith(`<<<<<<< ${ours}`)) open = { line: index + 1, sides: [[], []], side: 0 };
    } else if (line.startsWith(`>>>>>>> ${theirs}`)) {
      if (hunks.length < MOST_HUNKS) hunks.push(bounded(open));
      else more += 1;
      open = undefined;
    } else if (line === "=======" && open.side === 0) {
      open.side = 1;
    } else {
      open.sides[open.side].push(line);
    }
  }
  return { hunks, more };
}

function bounded({ line, sides }: { line: number; sides: [string[], string[]] }): ConflictHunk {
  const [ours, theirs] = sides.map((lines) =>
    lines
      .slice(0, MOST_LINES)
      .map((text) => [...text.slice(0, MOST_CHARACTERS * 2)].slice(0, MOST_CHARACTERS).join("")),
  );
  const omitted = sides.reduce((sum, lines) => sum + Math.max(0, lines.length - MOST_LINES), 0);
  return { line, ours: ours ?? [], theirs: theirs ?? [], omitted };
}
