import { basename } from "node:path";
import type { Conflict, MergedBranch, MergeOutcome } from "../../core/swarm/merge/merge-branches.ts";
import type { MergePreview } from "../../core/swarm/merge/preview-merge.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";
import { truncate } from "./text-width.ts";

const MOST_FILES_IN_A_ROW = 5;

/** What was merged; after a conflict also where it is, both sides of it, and what to type next. */
export function describeOutcome(outcome: MergeOutcome, project: string, width: number | undefined): string {
  const { into, tip, merged, conflict, remaining } = outcome;
  const rows = table<MergedBranch>(
    merged,
    [
      { title: "BRANCH", value: ({ branch }) => branch, flexible: true },
      { title: "WORKER", value: ({ worker }) => worker ?? "-", flexible: true },
      { title: "MERGE", value: ({ commit }) => commit?.slice(0, 12) ?? "was in already" },
    ],
    width,
  );
  const head = merged.length === 0 ? "" : rows;
  if (conflict === undefined) return `${head}${printable(into)} is at ${tip.slice(0, 12)}\n`;
  const lines = [
    ...(head === "" ? [] : [head.trimEnd(), ""]),
    `Stopped: ${conflict.branch}${whose(conflict)} conflicts with ${opponents(conflict, into)}`,
    ...conflict.files.flatMap((file) => describeFile(file, into, conflict.branch)),
    ...(conflict.more.length === 0 ? [] : [`  and ${conflict.more.length} more files`]),
    "",
    ...(remaining.length === 0
      ? []
      : [`Not merged yet: ${remaining.map(({ branch }) => branch).join(", ")}`, ""]),
    "To resolve it, beside your checkout:",
    ...nextSteps(outcome, project).map((step) => `  ${step}`),
  ];
  return `${lines.map((line) => (width === undefined ? line : truncateMarked(line, width))).join("\n")}\n`;
}

/** Commands, in their order; none after a merge that is whole. */
export function nextSteps({ into, conflict }: MergeOutcome, project: string): string[] {
  if (conflict === undefined) return [];
  const place = shellWord(`../${basename(project)}-merge`);
  return [
    `git worktree add ${place} ${into}`,
    `git -C ${place} merge --no-ff -m ${shellWord(`Merge branch '${conflict.branch}'`)} ${conflict.ref}`,
    `# edit the files in ${place}, then: git -C ${place} commit -a`,
    `git worktree remove ${place}`,
    `aido swarm merge --continue --into ${into}`,
  ];
}

export function describePreview({ into, branches, pairs }: MergePreview, width: number | undefined): string {
  if (pairs.length === 0)
    return `No conflicts between ${branches.length} branch${branches.length === 1 ? "" : "es"} and ${printable(into)}\n`;
  return table(
    pairs,
    [
      { title: "BRANCH", value: ({ one }) => one },
      { title: "CONFLICTS WITH", value: ({ other }) => other },
      { title: "FILES", value: ({ files }) => fileNames(files.map(({ path }) => path)), flexible: true },
    ],
    width,
  );
}

function fileNames(paths: readonly string[]): string {
  const more = paths.length - MOST_FILES_IN_A_ROW;
  const shown = paths.slice(0, MOST_FILES_IN_A_ROW).join(" ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function describeFile(file: Conflict["files"][number], into: string, branch: string): string[] {
  const kinds = file.kinds.length === 0 ? "" : ` (${file.kinds.map(printable).join(", ")})`;
  const lines = [`  ${printable(file.path)}${kinds}`];
  for (const { line, ours, theirs, omitted } of file.hunks) {
    lines.push(
      `    line ${line}, in ${into}:`,
      ...ours.map(side),
      `    and in ${branch}:`,
      ...theirs.map(side),
    );
    if (omitted > 0) lines.push(`    (${omitted} more lines)`);
  }
  if (file.more > 0) lines.push(`    (${file.more} more places)`);
  return lines;
}

function side(text: string): string {
  return `    | ${printable(text.replaceAll("\t", "  "))}`;
}

function opponents(conflict: Conflict, into: string): string {
  if (conflict.with.length === 0) return `what ${into} has`;
  return conflict.with.map((one) => `${one.branch}${whose(one)}`).join(", ");
}

function whose({ worker }: { worker: string | undefined }): string {
  return worker === undefined ? "" : ` (${printable(worker)})`;
}

/** Only files' lines are cut: what is to be typed stays whole. */
function truncateMarked(line: string, width: number): string {
  return line.startsWith("    | ") ? truncate(line, width) : line;
}

function shellWord(text: string): string {
  return /^[\w./@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
