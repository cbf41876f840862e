import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareBackupCommands(program: Command, act: Act): void {
  const backup = program
    .command("backup")
    .summary("copy the data directory to a file")
    .description(
      "Copy records, evidence, history and files to one file, also while a server runs. Files in Docker containers are not part of it.",
    )
    .argument("<file>", "a new .tar, or a .tar.gz to compress it")
    .action((file: string) =>
      act({ run: async (context) => (await import("../commands/backup.ts")).backup(context, file) }),
    );
  examples(backup, [["aido backup /backups/monday.tar.gz", "compressed"]]);
  const restore = program
    .command("restore")
    .summary("restore a backup into an empty data directory")
    .description(
      "Restore a backup into an empty data directory. No sandbox runs afterwards; local ones can be started.",
    )
    .argument("<file>", "what `aido backup` wrote")
    .action((file: string) =>
      act({ run: async (context) => (await import("../commands/backup.ts")).restore(context, file) }),
    );
  examples(restore, [["aido restore --data-dir /srv/aido monday.tar.gz", "into /srv/aido"]]);
}
