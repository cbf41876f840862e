import type { Command } from "commander";
import type { SwarmOptions } from "../commands/swarm-state.ts";
import type { CliContext } from "../context.ts";
import { type Act, failsWithOne } from "./act.ts";
import { examples } from "./examples.ts";

type Commands = typeof import("../commands/swarm-state.ts");
type Work = (commands: Commands, context: CliContext) => Promise<number>;
type Do = (work: Work) => Promise<void>;

const NAME = ["<containerName>", "as in aimi-swarm-login"] as const;

/** The state of a swarm for scripts and other tools, under the names, arguments and exit codes these know. */
export function declareSwarmCommands(program: Command, act: Act): void {
  const perform: Do = (work) =>
    act({
      failsWithOne: true,
      run: async (context) => work(await import("../commands/swarm-state.ts"), context),
    });
  declareInit(program, perform);
  declareAdd(program, perform);
  declareUpdate(program, perform);
  declareRemoval(program, perform);
  declareReads(program, perform);
}

function declareInit(program: Command, perform: Do): void {
  const init = swarmCommand(program, "swarm-init")
    .summary("start a swarm's state file")
    .description("Start a new swarm in .aimi/swarm-state.json and print it. Exit code 1 for any failure.")
    .option("--force", "also when containers of the swarm before are pending or running")
    .action((options: SwarmOptions & { force?: boolean }) =>
      perform((commands, context) => commands.swarmInit(context, options)),
    );
  examples(init, [
    ["aido swarm-init", "in the project of this directory"],
    ["aido swarm-init --force --dir ~/shop", "in place of the swarm before"],
  ]);
}

function declareAdd(program: Command, perform: Do): void {
  const add = swarmCommand(program, "swarm-add")
    .summary("register a container in the swarm")
    .description("Register a container as pending and print its entry. Exit code 1 for any failure.")
    .argument("<containerId>", "12 to 64 hexadecimal digits")
    .argument(...NAME)
    .argument("<taskFilePath>", "relative to the project")
    .argument("<branchName>", "the branch it works on")
    .action(
      (
        containerId: string,
        containerName: string,
        taskFilePath: string,
        branchName: string,
        options: SwarmOptions,
      ) =>
        perform((commands, context) =>
          commands.swarmAdd(context, { containerId, containerName, taskFilePath, branchName }, options),
        ),
    );
  examples(add, [
    [
      "aido swarm-add 4f0c2b9a81de aimi-swarm-login .aimi/tasks/2026-03-01-login-tasks.json feat/login",
      "status pending, no progress",
    ],
  ]);
}

function declareUpdate(program: Command, perform: Do): void {
  const update = swarmCommand(program, "swarm-update")
    .summary("change a container's entry in the swarm")
    .description(
      "Change one or more fields of a container's entry and print it. Any number of processes may do so at once. Exit code 1 for any failure.",
    )
    .argument(...NAME)
    .option("--status <status>", "pending, running, completed, failed or stopped")
    .option("--pr-url <url>", "its pull request")
    .option("--story-progress <json>", "counts: total, completed, failed, inProgress, pending")
    .option("--acp-pid <pid>", "the process that speaks to its agent, or null")
    .action((name: string, options: SwarmOptions) =>
      perform((commands, context) => commands.swarmUpdate(context, name, options)),
    );
  examples(update, [
    ["aido swarm-update aimi-swarm-login --status running --acp-pid 4711", "it was started"],
    [
      `aido swarm-update aimi-swarm-login --story-progress '{"total":5,"completed":2,"failed":0,"inProgress":1,"pending":2}'`,
      "how far it is",
    ],
  ]);
}

function declareRemoval(program: Command, perform: Do): void {
  const remove = swarmCommand(program, "swarm-remove")
    .summary("take a container out of the swarm's state")
    .description(
      "Remove a container's entry. The container itself is not touched. Exit code 1 for any failure.",
    )
    .argument(...NAME)
    .action((name: string, options: SwarmOptions) =>
      perform((commands, context) => commands.swarmRemove(context, name, options)),
    );
  examples(remove, [["aido swarm-remove aimi-swarm-login", "whatever its status"]]);
  const cleanup = swarmCommand(program, "swarm-cleanup")
    .summary("remove the entries of containers that have ended")
    .description(
      "Remove every entry that is completed, failed or stopped and print how many. Exit code 1 for any failure.",
    )
    .action((options: SwarmOptions) =>
      perform((commands, context) => commands.swarmCleanup(context, options)),
    );
  examples(cleanup, [["aido swarm-cleanup", 'prints {"removed":2}']]);
}

function declareReads(program: Command, perform: Do): void {
  const status = swarmCommand(program, "swarm-status")
    .summary("print the swarm's state")
    .description("Print the state of the swarm as JSON. Exit code 1 when there is none or it is damaged.")
    .action((options: SwarmOptions) =>
      perform((commands, context) => commands.swarmStatus(context, options)),
    );
  examples(status, [["aido swarm-status", "all that is known"]]);
  const list = swarmCommand(program, "swarm-list")
    .summary("list the swarm's containers")
    .description("Print a line for each container: name, tab, status. Exit code 1 for any failure.")
    .action((options: SwarmOptions) => perform((commands, context) => commands.swarmList(context, options)));
  examples(list, [["aido swarm-list", "names and statuses"]]);
}

function swarmCommand(program: Command, name: string): Command {
  const command = program
    .command(name)
    .option("--dir <path>", "the project, which holds .aimi (default: the current directory)");
  failsWithOne.add(command);
  return command;
}
