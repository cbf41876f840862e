import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareSwarmLogsCommand(swarm: Command, act: Act): void {
  const logs = swarm
    .command("logs")
    .summary("show what a worker wrote")
    .description(
      "Show what the adapter of a worker wrote: its messages as lines, and its log. Also of a worker that has ended, until it is removed. " +
        "With --json one value per line: message, log, invalid (neither), and end.",
    )
    .argument("<worker>", "its container's name, that without aimi-swarm-, or how either begins")
    .option("-f, --follow", "go on with what comes until the worker ends; waits for one that has not started")
    .option("--since-start", "from the first line on (the default)")
    .option("--tail <lines>", "only so many of the lines that are there already")
    .option("--raw", "the bytes as they are, standard output and standard error each to its own")
    .option("--dir <path>", "the project, which holds .aimi (default: the current directory)")
    .action((worker: string, options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm-logs.ts")).swarmLogs(context, worker, options),
        streams: true,
      }),
    );
  examples(logs, [
    ["aido swarm logs login", "all of aimi-swarm-login so far"],
    ["aido swarm logs login --follow --tail 20", "the last lines, then what comes"],
    ["aido swarm logs login --json --follow", "for programs"],
  ]);
}
