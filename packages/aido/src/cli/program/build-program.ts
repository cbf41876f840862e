import { Command } from "commander";
import { declareAboutCommands } from "./about-commands.ts";
import type { Act } from "./act.ts";
import { declareAgentCommands } from "./agent-commands.ts";
import { declareBackupCommands } from "./backup-commands.ts";
import { declareExecCommands } from "./exec-commands.ts";
import { declareHistoryCommands } from "./history-commands.ts";
import { declareBuildImageCommand, declareImageCommands } from "./image-commands.ts";
import { commandWord } from "./insert-separator.ts";
import { declareJobCommands } from "./job-commands.ts";
import { declareRunCommands } from "./run-commands.ts";
import { declareSandboxCommands } from "./sandbox-commands.ts";
import { declareSandboxManagerCommands } from "./sandbox-manager-commands.ts";
import { declareServerCommands } from "./server-commands.ts";
import { declareSnapshotCommands } from "./snapshot-commands.ts";
import { declareSshCommands } from "./ssh-commands.ts";
import { declareSwarmCommands } from "./swarm-commands.ts";
import { declareSwarmGroup } from "./swarm-group.ts";
import { declareSwarmTaskCommands } from "./swarm-task-commands.ts";
import { declareWorkflowCommands } from "./workflow-commands.ts";
import { declareWorkspaceCommands } from "./workspace-commands.ts";

type Declare = (program: Command, act: Act) => void;

/** What \`aido --help\` shows, in this order. */
const GROUPS: readonly [heading: string, declarations: readonly Declare[]][] = [
  ["Run a file", [declareRunCommands]],
  ["Sandboxes that stay", [declareSandboxCommands]],
  [
    "In a sandbox",
    [
      declareExecCommands,
      declareAgentCommands,
      declareHistoryCommands,
      declareWorkspaceCommands,
      declareSnapshotCommands,
    ],
  ],
  ["Many at once, and later", [declareJobCommands, declareWorkflowCommands]],
  ["Images and access", [declareImageCommands, declareSshCommands]],
  [
    "Swarms of coding agents",
    [
      declareSwarmGroup,
      declareSwarmCommands,
      declareSwarmTaskCommands,
      declareBuildImageCommand,
      declareSandboxManagerCommands,
    ],
  ],
  ["Server and records", [declareServerCommands, declareBackupCommands]],
  ["About aido", [declareAboutCommands]],
];

/** Called again and again by scripts, and each complete without the others: declaring all takes milliseconds. */
const ALONE: ReadonlyMap<string, Declare> = new Map([
  ["run", declareRunCommands],
  ["exec", declareExecCommands],
]);

/** The command line as declarations: all of it, or what `argv` needs. Nothing here does work: see `Act`. */
export function buildProgram(version: string, act: Act, argv: readonly string[] = []): Command {
  const program = new Command("aido")
    .description("Sandboxes for AI agents and untrusted code, on your own machine")
    .usage("<command> [options]")
    .option("--json", "print results as JSON; streams as one JSON value per line")
    .option("--driver <name>", "where sandboxes run: docker or local (default: docker when it is there)")
    .option("--data-dir <path>", "where aido keeps its data (default: ./.aido)")
    .option("--config <path>", "a configuration file")
    .option("--server <url>", "use an aido server instead of this machine (also AIDO_URL)")
    .option("--verbose", "say more: steps, causes of errors, more columns")
    .option("-q, --quiet", "say less: no notes and progress; lists print ids only")
    .version(version, "-V, --version", "print the version")
    .addHelpCommand(
      new Command("help")
        .argument("[command]")
        .description("show help for a command")
        .helpGroup("About aido:"),
    )
    .showHelpAfterError("(add --help for what can be written)")
    .configureHelp({ subcommandTerm, subcommandDescription });
  const alone = ALONE.get(commandWord(argv, program.options) ?? "");
  if (alone !== undefined) {
    alone(program, act);
    return program;
  }
  for (const [heading, declarations] of GROUPS) {
    program.commandsGroup(`${heading}:`);
    for (const declare of declarations) declare(program, act);
  }
  return program;
}

/** Of so many commands names alone fit beside what they do; `aido <command> --help` has the rest. */
function subcommandTerm(command: Command): string {
  const isOfMany = command.parent?.parent === null;
  const takes = isOfMany ? [] : [command.usage().replace(/^\[options\] ?/, "")];
  return [[command.name(), ...command.aliases()].join("|"), ...takes].join(" ").trimEnd();
}

/** Beside a name as part of a list, and above a command's own help as a sentence. */
function subcommandDescription(command: Command): string {
  const text = command.summary() || command.description();
  return `${text.charAt(0).toLowerCase()}${text.slice(1).replace(/\.$/, "")}`;
}
