import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareSwarmMergeCommand(swarm: Command, act: Act): void {
  const merge = swarm
    .command("merge")
    .summary("bring the workers' branches together")
    .description(
      "Fetch the branches of workers that completed and merge them one after the other into an integration branch. " +
        "Your checkout, your other branches and theirs stay as they are. Stops at a conflict and says what to do: exit code 5. " +
        "Run it again at any time; what is merged is left out.",
    )
    .argument("[worker...]", "workers or branches of origin (default: every worker that completed)")
    .option(
      "--into <branch>",
      "the integration branch (default: aimi/integration-<beginning of the swarm's id>)",
    )
    .option(
      "--base <branch>",
      "where a new integration branch begins (default: the default branch of origin)",
    )
    .option("--order <names>", "those to merge first, with commas between them")
    .option("--continue", "go on with a merge that stopped, with the commits fetched then")
    .option("--dry-run", "try out which of them conflict, pair by pair; merge nothing")
    .option("--dir <path>", "the project, which holds .aimi (default: the current directory)")
    .action((workers: string[], options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/swarm-merge.ts")).swarmMerge(context, workers, options),
      }),
    );
  examples(merge, [
    ["aido swarm merge --dry-run", "which branches conflict, and where"],
    ["aido swarm merge", "everything that is completed"],
    ["aido swarm merge login cart --into release/next", "two of them, in this order"],
    ["aido swarm merge --continue", "after a conflict was resolved"],
  ]);
}
