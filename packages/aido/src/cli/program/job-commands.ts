import type { Command } from "commander";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

export function declareJobCommands(program: Command, act: Act): void {
  declareJob(program, act);
  declareBatch(program, act);
}

function declareJob(program: Command, act: Act): void {
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

function declareBatch(program: Command, act: Act): void {
  const batch = program.command("batch").description("Make many sandboxes, and use many at once");
  const create = batch
    .command("create")
    .summary("make up to 50 sandboxes")
    .description(
      "Make sandboxes with a sidecar API and print their tokens, which are shown only once. Fields are those of the job SANDBOX_CREATE.",
    )
    .argument("<count>", "how many, 1 to 50")
    .argument("[fields...]", "name=value, such as image=python:3.12-slim")
    .action((count: string, fields: string[]) =>
      act({
        run: async (context) => (await import("../commands/batch.ts")).batchCreate(context, count, fields),
      }),
    );
  examples(create, [["aido batch create 10 stack=python memory_mb=256", "ten of a kind"]]);
  declareBatchWork(batch, act);
  const collected = batch
    .command("collect")
    .summary("take the results of a batch")
    .description("Print what became of each part of a batch and forget it.")
    .argument("<batch>", "its id")
    .action((id: string) =>
      act({ run: async (context) => (await import("../commands/batch.ts")).batchCollect(context, id) }),
    );
  examples(collected, [["aido batch collect batch-…", "once"]]);
  const list = batch
    .command("list")
    .summary("list batches")
    .description("List batches that were not collected, newest first.")
    .action(() =>
      act({ run: async (context) => (await import("../commands/batch.ts")).listBatches(context) }),
    );
  examples(list, [["aido batch list", "how far they are"]]);
  const cancel = batch
    .command("cancel")
    .summary("end a batch")
    .description("Begin no further part of a batch and end those that run. What has ended can be collected.")
    .argument("<batch>", "its id")
    .action((id: string) =>
      act({ run: async (context) => (await import("../commands/batch.ts")).batchCancel(context, id) }),
    );
  examples(cancel, [["aido batch cancel batch-…", "at once"]]);
}

function declareBatchWork(batch: Command, act: Act): void {
  const exec = withTargets(batch.command("exec"))
    .summary("run a command in many sandboxes")
    .description(
      "Run a shell command in many sandboxes, ten at a time. The exit code is 1 when one of them failed.",
    )
    .argument("<command>", "for the shell, in quotes")
    .option("-w, --cwd <path>", "where it starts")
    .option("-e, --env <NAME=value>", "set a variable; NAME alone passes its value on (repeatable)", collect)
    .action((command: string, options: object) =>
      act({
        run: async (context) => (await import("../commands/batch.ts")).batchExec(context, command, options),
      }),
    );
  examples(exec, [
    ["aido batch exec --label batch=batch-… 'uname -a'", "in all of a batch"],
    ["aido batch exec -s web -s db 'df -h /' --sequential", "one after the other"],
  ]);
  const task = withTargets(batch.command("task"))
    .summary("give many agents a task")
    .description("Give the agents of many sandboxes the same task.")
    .argument("<prompt>", "what to do, in quotes")
    .option("--session <id>", "go on in this session")
    .option("--max-turns <number>", "most turns of each")
    .option("--model <name>", "which model the agents use")
    .option("--aggregation <kind>", "all (default), first or majority")
    .action((prompt: string, options: object) =>
      act({
        run: async (context) => (await import("../commands/batch.ts")).batchTask(context, prompt, options),
      }),
    );
  examples(task, [
    ["aido batch task --label batch=batch-… 'fix the tests' --aggregation first", "whoever is first"],
  ]);
}

function withTargets(command: Command): Command {
  return command
    .option("-s, --sandbox <id>", "a sandbox, by id, name or sidecar URL (repeatable)", collect)
    .option("--token <token>", "its token, one for each --sandbox; not needed by an administrator", collect)
    .option("--label <NAME=value>", "every running sandbox with this label (repeatable)", collect)
    .option("--sequential", "one after the other")
    .option("--timeout <duration>", "most time for each, such as 30s");
}
