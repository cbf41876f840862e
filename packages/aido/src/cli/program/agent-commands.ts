import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareAgentCommands(program: Command, act: Act): void {
  const agent = program.command("agent").description("Run coding agents inside sandboxes");
  const run = agent
    .command("run")
    .summary("give an agent in a sandbox a message")
    .description(
      "Give an agent in a running sandbox a message and show what it says. Without a message it is read from standard input.",
    )
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("[message...]", "what it shall do; `--` before it is allowed")
    .option("--agent <identifier>", "which agent (default: the session's, the sandbox's or the settings')")
    .option("--session <id>", "go on with a session, or begin one of this name")
    .option("--model <name>", "which model, by the agent's own names")
    .option("--max-turns <number>", "most times it may ask its model")
    .option("--context <json>", "an object that it is told besides the message")
    .option("--timeout <duration>", "most time it may take, such as 10m (default: 30m)")
    .action((sandbox: string, message: string[], options: object) =>
      act({
        passesExitCode: true,
        streams: true,
        run: async (context) =>
          (await import("../commands/agent.ts")).runAgent(context, sandbox, message, options),
      }),
    );
  examples(run, [
    ['aido agent run web -- "make the tests pass"', "with the usual agent"],
    ['aido agent run web --agent codex --session fix-1 -- "go on"', "the next message of a session"],
    ["aido agent run web --max-turns 20 < task.md", "from a file"],
  ]);
  run.addHelpText(
    "after",
    "\nExit codes: 0 it did its work; 1 it failed; 124 its time was up; 125 aido itself failed.",
  );
  const cancel = agent
    .command("cancel")
    .summary("end what an agent does")
    .description("End the run of a session, or every run in the sandbox.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("[session]", "the session's id")
    .action((sandbox: string, session: string | undefined) =>
      act({
        run: async (context) => (await import("../commands/agent.ts")).cancelAgent(context, sandbox, session),
      }),
    );
  examples(cancel, [["aido agent cancel web fix-1", "that session's run and all it started"]]);
  const list = agent
    .command("list")
    .summary("list agents")
    .description("List the agents that can be run. A sandbox's image must have the agent's program.")
    .action(() =>
      act({ run: async (context) => (await import("../commands/agent.ts")).listAgents(context) }),
    );
  examples(list, [["aido agent list", "those aido knows and those of the settings"]]);
}
