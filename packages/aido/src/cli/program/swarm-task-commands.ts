import type { Command } from "commander";
import { type Act, failsWithOne } from "./act.ts";
import { examples } from "./examples.ts";

export function declareSwarmTaskCommands(program: Command, act: Act): void {
  const tasks = program
    .command("swarm-tasks")
    .summary("check a swarm's task files and list their stories")
    .description(
      "Check task files by the rules of their schema and list the stories; those that can begin are marked. " +
        "Every problem is told with its line and field.",
    )
    .argument("[file...]", "task files (default: all of .aimi/tasks/*-tasks.json)")
    .action((files: string[]) =>
      act({
        run: async (context) => (await import("../commands/swarm-tasks.ts")).swarmTasks(context, files),
        failsWithOne: true,
      }),
    );
  failsWithOne.add(tasks);
  examples(tasks, [
    ["aido swarm-tasks", "all of this project"],
    ["aido swarm-tasks .aimi/tasks/2026-01-05-login-tasks.json", "one"],
  ]);
  const approve = program
    .command("swarm-approve")
    .summary("whether a command of a swarm may run without asking")
    .description(
      "Check a command against the auto-approve policy. Exit 0: it may run without asking; anything else: it may not. " +
        "Several words are taken as they are, a single one as a whole command line.",
    )
    .argument("[command...]", "the command, behind `--`")
    .option("--policy", "print the policy instead")
    .action((command: string[], options: { policy?: boolean }) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm-approve.ts")).swarmApprove(context, command, options),
        failsWithOne: true,
      }),
    );
  failsWithOne.add(approve);
  examples(approve, [
    ["aido swarm-approve -- docker exec -i aimi-swarm-login /opt/aimi/acp-adapter", "approved"],
    ["aido swarm-approve -- 'docker run --privileged ubuntu'", "refused, with the reason"],
  ]);
}
