import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareHistoryCommands(program: Command, act: Act): void {
  const history = program
    .command("history")
    .summary("list how the workspace changed")
    .description("List the entries of a workspace's history, newest first: one per exec that changed it.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .option("-n, --limit <number>", "at most so many")
    .action((sandbox: string, options: object) =>
      act({
        run: async (context) => (await import("../commands/history.ts")).history(context, sandbox, options),
      }),
    );
  examples(history, [["aido history web", "what each exec changed"]]);
  const diff = program
    .command("diff")
    .summary("show what changed between two entries")
    .description(
      "Show what changed in the workspace between two entries; without any, what the newest one changed.",
    )
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("[from]", "the exec before (default: the one before the newest)")
    .argument("[to]", "the exec after (default: the newest)")
    .action((sandbox: string, from: string | undefined, to: string | undefined) =>
      act({
        run: async (context) => (await import("../commands/history.ts")).diff(context, sandbox, from, to),
      }),
    );
  examples(diff, [
    ["aido diff web", "the newest change"],
    ["aido diff web 7gk2m9qa x4tt1z0c", "between two execs"],
  ]);
  const rollback = program
    .command("rollback")
    .summary("put the workspace back")
    .description("Put the workspace back to what it was after an exec. That is a new entry; nothing is lost.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("<exec>", "the exec's id, as `aido history` shows it")
    .action((sandbox: string, exec: string) =>
      act({
        run: async (context) => (await import("../commands/history.ts")).rollback(context, sandbox, exec),
      }),
    );
  examples(rollback, [["aido rollback web 7gk2m9qa", "as it was after that exec"]]);
}
