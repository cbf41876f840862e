import type { Command } from "commander";
import type { CreateOptions } from "../commands/sandbox-manager.ts";
import type { CliContext } from "../context.ts";
import { type Act, failsWithOne } from "./act.ts";
import { examples } from "./examples.ts";

type Commands = typeof import("../commands/sandbox-manager.ts");

const NAME = ["<name>", "as in aimi-swarm-login"] as const;
const ISOLATION = [
  "--isolation <level>",
  "sysbox (the default), container, gvisor or kata; one that is missing is refused, never replaced",
] as const;

/** The containers of a swarm's workers, under the verbs, arguments and exit codes that other tools know. */
export function declareSandboxManagerCommands(program: Command, act: Act): void {
  const manager = program
    .command("sandbox-manager")
    .description("Containers of a swarm's workers, for scripts and other tools; prints JSON");
  failsWithOne.add(manager);
  const perform = (work: (commands: Commands, context: CliContext) => Promise<number>) =>
    act({
      failsWithOne: true,
      run: async (context) => work(await import("../commands/sandbox-manager.ts"), context),
    });
  const verb = (name: string, summary: string, ...aliases: string[]): Command => {
    const command = manager.command(name).aliases(aliases).summary(summary);
    command.description(
      `${summary.charAt(0).toUpperCase()}${summary.slice(1)}. Exit code 1 for any failure.`,
    );
    failsWithOne.add(command);
    return command;
  };
  const create = verb("create", "make a worker's container, on a network of its own")
    .argument(...NAME)
    .argument("<image>", "as in aimi-sandbox-shop:latest")
    .argument("[taskFile]", "the task file it works on")
    .argument("[branch]", "the branch it works on")
    .option(...ISOLATION)
    .option("--dir <path>", "the project, which holds .aimi (default: the current directory)")
    .action(
      (
        name: string,
        image: string,
        taskFilePath: string | undefined,
        branchName: string | undefined,
        options: CreateOptions,
      ) =>
        perform((commands, context) =>
          commands.createWorker(context, { name, image, taskFilePath, branchName }, options),
        ),
    );
  examples(create, [
    [
      "aido sandbox-manager create aimi-swarm-login aimi-sandbox-shop:latest .aimi/tasks/2026-03-01-login-tasks.json feat/login",
      "one that has ended under this name is replaced; one that runs is an error",
    ],
    [
      "aido sandbox-manager create aimi-swarm-login aimi-sandbox:latest --isolation container",
      "without Sysbox",
    ],
  ]);
  const status = verb("status", "say what a worker's container does")
    .argument(...NAME)
    .action((name: string) => perform((commands, context) => commands.workerStatus(context, name)));
  examples(status, [["aido sandbox-manager status aimi-swarm-login", "swarmState, dockerState, exitCode"]]);
  const remove = verb("remove", "remove a worker's container and its network", "rm")
    .argument(...NAME)
    .action((name: string) => perform((commands, context) => commands.removeWorker(context, name)));
  examples(remove, [["aido sandbox-manager remove aimi-swarm-login", "whatever it does; none is no error"]]);
  const list = verb("list", "list the containers of workers", "ls").action(() =>
    perform((commands, context) => commands.listWorkers(context)),
  );
  examples(list, [["aido sandbox-manager list", "name, status, created, taskFile"]]);
  const cleanup = verb("cleanup", "remove the containers of workers that have ended", "clean").action(() =>
    perform((commands, context) => commands.cleanUpWorkers(context)),
  );
  examples(cleanup, [["aido sandbox-manager cleanup", "those that run or wait stay"]]);
  const check = verb("check-runtime", "say whether the engine can isolate workers")
    .option(...ISOLATION)
    .action((options: { isolation?: string }) =>
      perform((commands, context) => commands.checkWorkerRuntime(context, options)),
    );
  examples(check, [
    ["aido sandbox-manager check-runtime", "exit code 1, and what to install, without Sysbox"],
  ]);
}
