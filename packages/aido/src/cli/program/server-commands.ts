import type { Command } from "commander";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

export function declareServerCommands(program: Command, act: Act): void {
  const serve = program
    .command("serve")
    .summary("serve the HTTP API")
    .description("Serve sandboxes to others over HTTP. Sandboxes and their commands outlive the server.")
    .option(
      "--host <address>",
      "where to listen (default: 127.0.0.1); others need a key, see `aido key create`",
    )
    .option("--port <number>", "which port (default: 3000); 0 takes a free one")
    .option("--ssh-port <number>", "take SSH logins to sandboxes on this port; 0 takes a free one")
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/serve.ts")).serve(context, options) }),
    );
  examples(serve, [
    ["aido serve", "on http://127.0.0.1:3000"],
    ["aido serve --host 0.0.0.0 --port 8080", "for others; needs a key"],
    ["aido serve --ssh-port 2222", "SSH clients log in to sandboxes too"],
  ]);
  const metrics = program
    .command("metrics")
    .summary("show jobs, sandboxes and the reaper in numbers")
    .description("Show counters and gauges by name, as `GET /api/metrics` answers them.")
    .action(() => act({ run: async (context) => (await import("../commands/metrics.ts")).metrics(context) }));
  examples(metrics, [["aido metrics --json | jq .failed_jobs", "one of them"]]);
  const key = program.command("key").description("Make, list and revoke the keys of this machine's server");
  const create = key
    .command("create")
    .summary("make a key")
    .description("Make a key and print it once. Without scopes it may read and write its own sandboxes.")
    .argument("<name>", "whose or what for; shown in the audit log")
    .option("--scope <scope>", "read, write or admin; may be given several times", collect)
    .option("--expires <duration>", "how long it is good for, such as 24h")
    .option("--max-sandboxes <number>", "sandboxes it may have; 0 means no limit (default: the server's)")
    .option("--max-cpus <number>", "processors of all that run; 0 means no limit (default: the server's)")
    .option("--max-memory <size>", "memory of all that run; 0 means no limit (default: the server's)")
    .option("--rate-limit <number>", "requests a minute; 0 means no limit (default: the server's)")
    .action((name: string, options: object) =>
      act({ run: async (context) => (await import("../commands/key.ts")).createKey(context, name, options) }),
    );
  examples(create, [
    ["aido key create laptop", "reads and writes its own sandboxes"],
    ["aido key create ci --expires 24h", "good for a day"],
    ["aido key create guest --max-sandboxes 2 --max-memory 1g", "less than the server allows others"],
  ]);
  const list = key
    .command("list")
    .summary("list keys")
    .description("List keys; their secrets are not kept.")
    .action(() => act({ run: async (context) => (await import("../commands/key.ts")).listKeys(context) }));
  examples(list, [["aido key list", "ids, names, scopes, limits"]]);
  const revoke = key
    .command("revoke")
    .summary("revoke a key")
    .description("Revoke a key; requests with it are refused from then on.")
    .argument("<id>", "as `aido key list` shows it")
    .action((id: string) =>
      act({ run: async (context) => (await import("../commands/key.ts")).revokeKey(context, id) }),
    );
  examples(revoke, [["aido key revoke k3x9a0bc", "at once"]]);
}
