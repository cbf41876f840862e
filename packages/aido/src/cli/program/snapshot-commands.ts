import type { Command } from "commander";
import type { SnapshotOptions } from "../commands/snapshot.ts";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareSnapshotCommands(program: Command, act: Act): void {
  const snapshot = program
    .command("snapshot")
    .summary("keep a sandbox's files in an object store")
    .description(
      "Keep a sandbox's files as one object in an object store, or put one back. A damaged object replaces nothing.",
    )
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .option("--to <url>", "where: https://… or s3://… (default: the operator's own place, snapshot.prefix)")
    .option("--state", "/var/lib/sidecar too")
    .option("--from <url>", "put this snapshot back in place of the sandbox's files")
    .option("--sha256 <hash>", "with --from: the hash the snapshot must have")
    .action((sandbox: string, options: SnapshotOptions) =>
      act({
        run: async (context) => (await import("../commands/snapshot.ts")).snapshot(context, sandbox, options),
      }),
    );
  examples(snapshot, [
    ["aido snapshot web", "to the operator's place"],
    ["aido snapshot web --to s3://backups/web.tar.gz", "to a bucket"],
    ["aido snapshot web --from s3://backups/web.tar.gz", "put it back"],
  ]);
}
