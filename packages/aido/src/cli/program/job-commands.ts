import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareJobCommands(program: Command, act: Act): void {
  const job = program.command("job").description("Run jobs: typed requests by number or name");
  const list = job
    .command("list")
    .summary("list jobs")
    .description("List every job. With --json, the schema of each request too.")
    .action(() => act({ run: async (context) => (await import("../commands/job.ts")).listJobs(context) }));
  examples(list, [["aido job list", "numbers, names, what they do"]]);
  const run = job
    .command("run")
    .summary("run a job")
    .description(
      "Run a job and print its result as JSON. Fields are given as name=value, in camelCase or snake_case.",
    )
    .argument("<job>", "number or name, such as 10 or EXEC")
    .argument("[fields...]", "name=value; again for a list, a.b=value within another")
    .option("--json-args <json>", "the request as a JSON object")
    .option("-f, --file <path>", "the request from a file; - is standard input")
    .action((name: string, fields: string[], options: object) =>
      act({
        run: async (context) => (await import("../commands/job.ts")).runJob(context, name, fields, options),
      }),
    );
  examples(run, [
    ["aido job run SANDBOX_CREATE image=python:3.12-slim", "a sandbox with a token"],
    ["aido job run 10 sidecar_url=sandbox-… command='ls -l'", "a command in it"],
    ["aido job run BATCH_EXEC -f request.json", "a request from a file"],
  ]);
}
