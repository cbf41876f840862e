import { AidoError } from "@aido/sdk/protocol";

/** One thing that is wrong: which field on which line, and what to write instead. */
export interface TaskFileProblem {
  field: string;
  line: number;
  problem: string;
  fix: string;
}

/** Problems beyond these are of no help to anyone. */
const MAX_PROBLEMS = 50;

export function taskFileError(file: string, problems: readonly TaskFileProblem[]): AidoError {
  const [first] = problems;
  if (first === undefined) throw new TypeError("no problem to report");
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  return new AidoError(
    "TASK_FILE_INVALID",
    `Invalid tasks.json - ${first.field} ${first.problem} (${file}:${first.line})${more}`,
    { hint: first.fix, details: { file, problems: problems.slice(0, MAX_PROBLEMS) } },
  );
}

/** Every problem in the form people and tools know: two lines each. */
export function describeProblems(file: string, problems: readonly TaskFileProblem[]): string[] {
  return problems.flatMap(({ field, line, problem, fix }) => [
    `Error: Invalid tasks.json - ${field} ${problem} (${file}:${line})`,
    `Fix: ${fix}`,
  ]);
}
