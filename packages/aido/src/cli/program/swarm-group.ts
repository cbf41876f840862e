import type { Command } from "commander";
import type { Act } from "./act.ts";
import { declareSwarmLogsCommand } from "./swarm-logs-commands.ts";
import { declareSwarmMergeCommand } from "./swarm-merge-commands.ts";
import { declareSwarmRunCommands } from "./swarm-run-commands.ts";

/** `aido swarm …`. */
export function declareSwarmGroup(program: Command, act: Act): void {
  const swarm = program
    .command("swarm")
    .description("Agents on one repository, each in a container and on a branch of its own");
  declareSwarmRunCommands(swarm, act);
  declareSwarmLogsCommand(swarm, act);
  declareSwarmMergeCommand(swarm, act);
}
