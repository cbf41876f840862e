import type { Command } from "commander";

/** Shown below a command's help: what to type, and what it does. */
export function examples(command: Command, lines: readonly (readonly [string, string])[]): Command {
  const width = Math.max(...lines.map(([line]) => line.length));
  const text = lines.map(([line, about]) => `  $ ${line.padEnd(width)}   ${about}`).join("\n");
  return command.addHelpText("after", `\nExamples:\n${text}`);
}
