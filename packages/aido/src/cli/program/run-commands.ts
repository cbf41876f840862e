import type { Command } from "commander";
import type { RunCommandOptions } from "../commands/run.ts";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

const autoDestroy = (options: { autoDestroy?: boolean }): { autoDestroy?: false } =>
  options.autoDestroy === false ? { autoDestroy: false } : {};

export function declareRunCommands(program: Command, act: Act): void {
  declareRun(program, act);
  declareLogs(program, act);
  declareOutputs(program, act);
  declareSandbox(program, act);
}

function declareRun(program: Command, act: Act): void {
  const run = program
    .command("run")
    .summary("run a task file in a sandbox")
    .description(
      "Run a task file in a sandbox and pass its output and exit code through. Without --sandbox the newest one made by `sandbox up` is used; when there is none, a new one that fits ./sandbox.yaml or the file's extension.",
    )
    .argument("[task]", "a script; leave it away to run the steps of the sandbox's spec")
    .option("--sandbox <id>", "the sandbox to run in: id, unique beginning of an id, or name")
    .option("--runtime <name>", "python, node, bash or an image; makes a sandbox for this task alone")
    .option("--image <image>", "the image to run in; makes a sandbox for this task alone")
    .option("--ttl <duration>", "most time the sandbox may live, such as 5m")
    .option("-e, --env <NAME=value>", "set a variable; NAME alone passes its value on (repeatable)", collect)
    .option("--cpus <number>", "share of processors, such as 0.5")
    .option("--memory <size>", "most memory, such as 512m")
    .option("--pids <number>", "most processes")
    .option("--disk <size>", "most disk space, such as 2g")
    .option("--isolation <level>", "container (default), gvisor, sysbox or kata; refused when not available")
    .option("--no-auto-destroy", "keep the container when the run has ended")
    .option("--dangerous-allow-host-network", "give the task the host's own network")
    .option("--dangerous-allow-privileged", "give the task full privileges of the engine")
    .action((task: string | undefined, options: RunCommandOptions) =>
      act({
        passesExitCode: true,
        run: async (context) =>
          (await import("../commands/run.ts")).run(context, task, {
            ...omitAutoDestroy(options),
            ...autoDestroy(options),
          }),
      }),
    );
  examples(run, [
    ["aido run analyze.py", "in the newest sandbox, or in a new Python one"],
    ["aido run build.sh --sandbox ab12cd34", "in this sandbox"],
    ["aido run app.js --image node:22-slim --ttl 2m", "in an image of your choice"],
    ["aido run analyze.py --json | jq .exitCode", "the summary as JSON; output is in the logs"],
  ]);
  run.addHelpText(
    "after",
    "\nExit codes: the task's own; 124 its time was up; 125 aido itself failed; 128+n ended by signal n.",
  );
}

function omitAutoDestroy(options: RunCommandOptions): Omit<RunCommandOptions, "autoDestroy"> {
  const { autoDestroy: _, ...rest } = options;
  return rest;
}

function declareLogs(program: Command, act: Act): void {
  const logs = program
    .command("logs")
    .summary("show a run's or an exec's output")
    .description(
      "Show the recorded output of a run (the newest by default) or of one exec. Standard output and standard error go to their own streams, in the order they came.",
    )
    .argument("[sandbox]", "id, unique beginning of an id, or name")
    .option("--sandbox <id>", "the same as the argument")
    .option("--exec <id>", "the output of this exec instead of the run's")
    .option("-f, --follow", "go on until the run has ended")
    .option("--stdout", "standard output only")
    .option("--stderr", "standard error only")
    .option("--separate", "first all of standard output, then all of standard error")
    .action((sandbox: string | undefined, options: object) =>
      act({
        streams: true,
        run: async (context) => (await import("../commands/logs.ts")).logs(context, sandbox, options),
      }),
    );
  examples(logs, [
    ["aido logs", "the newest run"],
    ["aido logs --follow", "as it is written"],
    ["aido logs ab12cd34 --stderr", "errors only"],
  ]);
}

function declareOutputs(program: Command, act: Act): void {
  const outputs = program
    .command("outputs")
    .summary("list or copy the files a run has left")
    .description(
      "List the files that a run (the newest by default) wrote to /outputs, or copy them. Works for runs on a server too.",
    )
    .argument("[sandbox]", "id, unique beginning of an id, or name")
    .option("--to <directory>", "copy them into this directory, which is made if need be")
    .action((sandbox: string | undefined, options: object) =>
      act({
        run: async (context) => (await import("../commands/outputs.ts")).outputs(context, sandbox, options),
      }),
    );
  examples(outputs, [
    ["aido outputs", "their names"],
    ["aido outputs ab12cd34 --to results", "copies of them"],
  ]);
}

function declareSandbox(program: Command, act: Act): void {
  const sandbox = program.command("sandbox").description("Make, list and destroy sandboxes for runs");
  const up = sandbox
    .command("up")
    .summary("make a sandbox from a spec")
    .description(
      "Make a sandbox from sandbox.yaml: its directories, a copy of its inputs, its image. Prints its id and status; nothing runs yet.",
    )
    .option("--spec <path>", "the spec file (default: ./sandbox.yaml)")
    .option("--template <name>", "python, node or bash: no spec file needed")
    .option("--no-auto-destroy", "keep containers when their run has ended")
    .action((options: { spec?: string; template?: string; autoDestroy?: boolean }) =>
      act({
        run: async (context) => {
          const { autoDestroy: _, ...rest } = options;
          return (await import("../commands/sandbox-up.ts")).sandboxUp(context, {
            ...rest,
            ...autoDestroy(options),
          });
        },
      }),
    );
  examples(up, [
    ["aido sandbox up", "from ./sandbox.yaml"],
    ["aido sandbox up --template python", "without a spec file"],
  ]);
  const list = sandbox
    .command("list")
    .summary("list sandboxes, newest first")
    .description("List sandboxes, newest first.")
    .option("-a, --all", "deleted ones too")
    .option("--label <NAME=value>", "only those with this label (repeatable)", collect)
    .action((options: object) =>
      act({ run: async (context) => (await import("../commands/list.ts")).list(context, options) }),
    );
  examples(list, [["aido sandbox list --json", "as a JSON array"]]);
  const destroy = sandbox
    .command("destroy")
    .summary("destroy sandboxes and their files")
    .description(
      "Stop and remove a sandbox (the newest unless named), its container and its files. Its evidence is kept.",
    )
    .argument("[sandbox...]", "ids, unique beginnings of ids, or names")
    .option("--sandbox <id>", "the same as the argument")
    .option("--all", "every sandbox")
    .action((sandboxes: string[], options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/destroy.ts")).destroy(context, sandboxes, { ...options, latest: true }),
      }),
    );
  examples(destroy, [
    ["aido sandbox destroy --sandbox ab12cd34", "one"],
    ["aido sandbox destroy --all", "all of them"],
  ]);
}
