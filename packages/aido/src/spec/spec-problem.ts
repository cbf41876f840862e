import { AidoError } from "@aido/sdk/protocol";

/** One thing wrong in a spec file. Lines and columns count from 1. */
export interface SpecProblem {
  line: number;
  column: number;
  /** Where in the document, for example `steps[1].task`; empty for the document itself. */
  path: string;
  message: string;
  /** The offending text as it stands in the file. */
  text: string;
  /** What to write instead. */
  fix: string;
}

/** All problems at once, in the order of the file, each as `file:line:column: message`. */
export function toSpecError(file: string, problems: readonly SpecProblem[]): AidoError {
  const sorted = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
  const lines = sorted.map((problem) => `${file}:${problem.line}:${problem.column}: ${describe(problem)}`);
  const first = sorted[0];
  const message =
    sorted.length === 1
      ? (lines[0] ?? file)
      : [`${file} has ${sorted.length} problems`, ...lines.map((line) => `  ${line}`)].join("\n");
  return new AidoError("INVALID_SPEC", message, {
    hint: sorted.length === 1 ? first?.fix : "Correct these lines; nothing was started.",
    details: { file, problems: sorted },
  });
}

function describe(problem: SpecProblem): string {
  const text = problem.text === "" ? "" : ` (found: ${problem.text})`;
  return `${problem.message}${text}. ${problem.fix}`;
}
