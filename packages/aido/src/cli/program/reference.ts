import type { Command } from "commander";

const INTRODUCTION = `# Command line

Results are on standard output; notes, progress and errors on standard error. \`--json\` prints one JSON value, or one
per line for streams (\`exec\`, \`logs\`, \`agent run\`, \`evidence\`, \`stats --watch\`). A sandbox is named by its id, a unique beginning of its
id, or its name.

## Exit codes

| code    | meaning                                                                                             |
| ------- | --------------------------------------------------------------------------------------------------- |
| 0       | done                                                                                                |
| 1       | a bug or an unexpected failure; any failure of \`swarm-init\` and the other \`swarm-…\` commands        |
| 2       | the command line, a file or a value is wrong                                                        |
| 3       | not allowed                                                                                         |
| 4       | there is no such sandbox, file or image                                                             |
| 5       | it does not fit the current state: name taken, not running, evidence broken, branches that conflict |
| 6       | a limit was reached                                                                                 |
| 7       | it took too long                                                                                    |
| 8       | something needed is not available, such as the engine                                               |
| 9       | this machine cannot do it                                                                           |
| 124     | \`run\`, \`exec\`, \`shell\`: the command's time was up                                                   |
| 125     | \`run\`, \`exec\`, \`shell\`: aido itself failed; every other code but 2 is the command's own             |
| 128 + n | \`run\`, \`exec\`, \`shell\`: ended by signal n; 130 after Ctrl-C, 137 also when memory ran out           |

## JSON

- A result is the value that the table or line stands for: a sandbox, a list of sandboxes, the run's summary.
- A failure is \`{"error": {"code", "message", "hint", "details"}}\`; in a stream its line also has \`"type": "error"\`.
- \`exec\` and \`logs\` print \`{"type": "output", "stream", "offset", "text"}\` per piece of output, with \`base64\` instead of \`text\`
  for bytes that are not UTF-8; \`exec\` ends with \`{"type": "end", "exitCode", "status", …}\`.
- \`run\` prints its summary when it has ended. The task's output is in the files that the summary names.
`;

/** The reference page, made from the declarations so that it cannot say anything else. */
export function renderReference(program: Command): string {
  const commands = leaves(program).map(section);
  return `${INTRODUCTION}\n## Global options\n\n${options(program)}\n${commands.join("\n")}`;
}

function leaves(command: Command): Command[] {
  return command.commands.flatMap((child) => (child.commands.length > 0 ? leaves(child) : [child]));
}

function section(command: Command): string {
  const parent = command.parent === null ? "aido" : path(command.parent);
  const aliases = command.aliases().map((alias) => `\`${parent} ${alias}\``);
  const parts = [
    `## ${path(command)}\n`,
    `\`${path(command)} ${command.usage().replace("[options] ", "").trim()}\`${aliases.length > 0 ? `, also ${aliases.join(", ")}` : ""}\n`,
    `${command.description()}\n`,
  ];
  if (command.registeredArguments.length > 0) {
    parts.push(
      `${command.registeredArguments.map((each) => `- \`${each.name()}\`: ${each.description}`).join("\n")}\n`,
    );
  }
  if (command.options.length > 0) parts.push(options(command));
  return parts.join("\n");
}

function path(command: Command): string {
  return command.parent === null ? command.name() : `${path(command.parent)} ${command.name()}`;
}

function options(command: Command): string {
  const rows = command.options.map((option) => [
    `\`${option.flags}\``,
    option.description.replaceAll("|", "\\|"),
  ]);
  const width = Math.max(6, ...rows.map(([flags]) => flags?.length ?? 0));
  const about = Math.max(7, ...rows.map(([, text]) => text?.length ?? 0));
  const line = (left: string, right: string) => `| ${left.padEnd(width)} | ${right.padEnd(about)} |`;
  return `${[
    line("option", "meaning"),
    line("-".repeat(width), "-".repeat(about)),
    ...rows.map(([flags = "", text = ""]) => line(flags, text)),
  ].join("\n")}\n`;
}
