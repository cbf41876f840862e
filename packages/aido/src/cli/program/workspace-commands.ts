import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareWorkspaceCommands(program: Command, act: Act): void {
  const workspace = program
    .command("workspace")
    .summary("files that outlive sandboxes")
    .description(
      "Workspaces are working directories that outlive the sandboxes which have them, one at a time: " +
        "`aido create --workspace <name>`.",
    );
  const list = workspace
    .command("list")
    .summary("list workspaces")
    .description("List workspaces: which sandbox has each, and when it is removed unless one takes it.")
    .option("--all", "those of every owner of a server's keys too")
    .action((options: object) =>
      act({
        run: async (context) => (await import("../commands/workspace.ts")).listWorkspaces(context, options),
      }),
    );
  examples(list, [["aido workspace list --all", "what a server keeps, whoever's it is"]]);
  const remove = workspace
    .command("rm")
    .summary("remove workspaces")
    .description("Remove workspaces with all they hold. Those that a sandbox has are refused.")
    .argument("<name...>", "their names")
    .option("--owner <owner>", "whose they are, as `list --all` shows it (default: one's own)")
    .action((names: string[], options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/workspace.ts")).removeWorkspaces(context, names, options),
      }),
    );
  examples(remove, [["aido workspace rm data", "its files are gone"]]);
}
