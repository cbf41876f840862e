import type { Command } from "commander";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

export function declareWorkflowCommands(program: Command, act: Act): void {
  const workflow = program
    .command("workflow")
    .description("Keep tasks that are run when asked for, or by a schedule");
  declareCreate(workflow, act);
  const list = workflow
    .command("list")
    .summary("list workflows")
    .description("List workflows, newest first, with when they run next.")
    .option("--active", "without those that were cancelled")
    .action((options: { active?: boolean }) =>
      act({
        run: async (context) => (await import("../commands/workflow.ts")).listWorkflows(context, options),
      }),
    );
  examples(list, [["aido workflow list --active", "what runs when"]]);
  const trigger = workflow
    .command("trigger")
    .summary("run a workflow now")
    .description("Run a workflow now, besides its schedule, and print what its last step said.")
    .argument("<workflow>", "its number")
    .action((id: string) =>
      act({ run: async (context) => (await import("../commands/workflow.ts")).triggerWorkflow(context, id) }),
    );
  examples(trigger, [["aido workflow trigger 3 --json", "with every step"]]);
  const cancel = workflow
    .command("cancel")
    .summary("run a workflow no more")
    .description("Run a workflow no more, and end the run that goes on. Its runs can still be looked at.")
    .argument("<workflow>", "its number")
    .action((id: string) =>
      act({ run: async (context) => (await import("../commands/workflow.ts")).cancelWorkflow(context, id) }),
    );
  examples(cancel, [["aido workflow cancel 3", "for good"]]);
  const runs = workflow
    .command("runs")
    .summary("list the runs of a workflow")
    .description("List the last runs of a workflow, newest first. With --json, the output of every step too.")
    .argument("<workflow>", "its number")
    .option("--limit <count>", "at most so many, up to 100", "20")
    .action((id: string, options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/workflow.ts")).listWorkflowRuns(context, id, options),
      }),
    );
  examples(runs, [["aido workflow runs 3 --limit 5", "the last five"]]);
}

function declareCreate(workflow: Command, act: Act): void {
  const create = workflow
    .command("create")
    .summary("keep a task")
    .description("Keep a prompt or commands, to be run when asked for, or by a schedule while a server runs.")
    .argument("<name>", "what it is called")
    .option("--prompt <text>", "for the agent in the sandbox")
    .option("--command <command>", "a shell command; again for a further step", collect, [])
    .option("-f, --file <path>", "the workflow as JSON; - is standard input")
    .option("--cron <fields>", "six fields: second minute hour day month weekday")
    .option("--timezone <name>", "of the schedule, such as Europe/Berlin (default UTC)")
    .option("--missed <policy>", "a time while no server ran: run (once, default) or skip")
    .option("--overlap <policy>", "a time while the last run goes on: skip (default) or queue")
    .option("-s, --sandbox <sandbox>", "run in this one; otherwise each run makes one of its own")
    .option("--token <token>", "of that sandbox's sidecar API")
    .option("--set <name=value>", "of the sandbox that a run makes, as for SANDBOX_CREATE", collect, [])
    .option("--timeout <duration>", "of each step (default 1m)")
    .option("--model <model>", "for the prompt")
    .option("--max-turns <count>", "for the prompt (default 4)")
    .action((name: string, options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/workflow.ts")).createWorkflow(context, name, options),
      }),
    );
  examples(create, [
    ["aido workflow create nightly --cron '0 30 3 * * *' --command 'make test' -s web", "every night"],
    ["aido workflow create report --prompt 'sum up the logs' --set stack=python", "when asked for"],
  ]);
}
