import { parseArgs } from "node:util";

export const HELP = `Usage: acp-adapter [--input <file>]

Does the stories of one task file in a worker of a swarm. Reads one task-request, a line of JSON, from standard
input; writes progress-update messages and one last completion or error to standard output, a line each; logs go
to standard error. Ends with 0 when all stories were gone through, 1 when it failed, 130 when it was stopped.

  --input <file>   read the task-request from this file
  --version        print the version
  --help           print this
`;

export type CommandLine =
  | { readonly kind: "run"; readonly input: string | undefined }
  | { readonly kind: "help" }
  | { readonly kind: "version" }
  | { readonly kind: "wrong"; readonly problem: string };

export function readCommandLine(argv: readonly string[]): CommandLine {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: { input: { type: "string" }, help: { type: "boolean" }, version: { type: "boolean" } },
    });
    if (values.help === true) return { kind: "help" };
    if (values.version === true) return { kind: "version" };
    return { kind: "run", input: values.input };
  } catch (thrown) {
    return { kind: "wrong", problem: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
