import type { Command } from "commander";
import type { RunSwarmFlags } from "../commands/swarm/run-swarm.ts";
import type { WorkerFlags } from "../commands/swarm/swarm-options.ts";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

const DIR = ["--dir <path>", "the project, which holds .aimi (default: the current directory)"] as const;

/** Starting a swarm, going on with it, looking after it. */
export function declareSwarmRunCommands(swarm: Command, act: Act): void {
  declareRun(swarm, act);
  declareResume(swarm, act);
  const status = swarm
    .command("status")
    .summary("every worker and how far it is")
    .description("Compare the swarm's state with the engine and print a line for each worker.")
    .option(...DIR)
    .action((options: { dir?: string }) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm/look-after-swarm.ts")).swarmStatusTable(context, options),
      }),
    );
  examples(status, [["aido swarm status", "as a table; with --json the state itself"]]);
  const stop = swarm
    .command("stop")
    .summary("end workers")
    .description(
      "Ask workers to put their work away and end; kill those that do not. Pending ones never begin. Their branches stay.",
    )
    .argument("[worker...]", "as in login or aimi-swarm-login (default: all)")
    .option("--grace <duration>", "what they have for it (default: 30s)")
    .option(...DIR)
    .action((workers: string[], options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm/look-after-swarm.ts")).stopSwarm(context, workers, options),
      }),
    );
  examples(stop, [
    ["aido swarm stop", "the whole swarm"],
    ["aido swarm stop login --grace 2m", "one of its workers"],
  ]);
  const cleanup = swarm
    .command("cleanup")
    .summary("remove what has ended")
    .description(
      "Remove the containers and entries of workers that completed, failed or were stopped. Their branches stay.",
    )
    .option(...DIR)
    .action((options: { dir?: string }) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm/look-after-swarm.ts")).cleanUp(context, options),
      }),
    );
  examples(cleanup, [["aido swarm cleanup", "prints the names of what was removed"]]);
}

function declareRun(swarm: Command, act: Act): void {
  const run = swarm
    .command("run", { isDefault: true })
    .summary("give task files to agents and follow them to their end (default)")
    .description(
      "Start a worker for each task file: an agent in a container of its own, on a branch of its own. Ctrl-C leaves them at work. " +
        "Exit code 0 when all completed, 1 when some did not.",
    )
    .argument("[command...]", "behind `--`: the program of an acp or command agent")
    .option("--file <path>", "one task file")
    .option("--files <paths>", "several, with commas between them")
    .option("--all", "all of .aimi/tasks/*-tasks.json")
    .option("--force", "end the swarm that is at work, and begin anew")
    .option("--append", "add to the swarm that is at work")
    .option("--detach", "leave it to a process in the background")
    .option("--yes", "ask nothing: all task files, and yes to --force");
  workerOptions(run).action((argv: string[], options: RunSwarmFlags) =>
    act({
      streams: true,
      run: async (context) =>
        (await import("../commands/swarm/run-swarm.ts")).runSwarm(context, argv, options),
    }),
  );
  examples(run, [
    ["aido swarm", "choose from the task files; one alone is taken"],
    ["aido swarm --all --max 2", "all of them, two at a time"],
    ["aido swarm --files login-tasks.json,cart-tasks.json --isolation container", "these, without Sysbox"],
    ["aido swarm --all --max-tokens 2000000 --swarm-max-time 4h", "with budgets"],
    ["aido swarm --file login-tasks.json --agent acp -- my-agent --acp", "with another agent"],
  ]);
}

function declareResume(swarm: Command, act: Act): void {
  const resume = swarm
    .command("resume")
    .summary("go on with a swarm")
    .description(
      "Go on after a crash, Ctrl-C or a failure: workers that run are followed again, those that failed or were stopped are begun anew on " +
        "their branches, those that wait are begun. Each is run as it was asked for, unless said otherwise.",
    )
    .argument("[worker...]", "of those that failed or were stopped only these");
  workerOptions(resume).action((workers: string[], options: WorkerFlags) =>
    act({
      streams: true,
      run: async (context) =>
        (await import("../commands/swarm/resume-swarm.ts")).resumeSwarm(context, workers, options),
    }),
  );
  examples(resume, [
    ["aido swarm resume", "all that is not completed"],
    ["aido swarm resume login --max-tokens 5000000", "one of those that ended, with a larger budget"],
  ]);
}

function workerOptions(command: Command): Command {
  return command
    .option("--max <n>", "workers that run at once; others wait (default: 4)")
    .option(
      "--isolation <kind>",
      "sysbox, container, gvisor or kata (default: sysbox); refused where it is not there",
    )
    .option("--agent <kind>", "claude, acp or command (default: claude)")
    .option("--agent-argv <json>", "the agent's program as a JSON list, instead of words behind `--`")
    .option("--model <name>", "what the agent is to use")
    .option("--env <name>", "a variable of yours that agents get; may be given several times", collect)
    .option("--image <image>", "instead of the project's own")
    .option("--no-build", "take the project's image as it is")
    .option("--max-turns <n>", "per worker")
    .option("--max-tokens <n>", "per worker, read and written")
    .option("--max-time <duration>", "per worker")
    .option("--max-silence <duration>", "a worker that says nothing for so long is stopped (default: 30m)")
    .option("--swarm-max-turns <n>", "all workers together")
    .option("--swarm-max-tokens <n>", "all workers together")
    .option("--swarm-max-time <duration>", "the whole swarm")
    .option(...DIR);
}
