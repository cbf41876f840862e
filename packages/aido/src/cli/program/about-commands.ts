import type { Command } from "commander";
import type { Act } from "./act.ts";
import { examples } from "./examples.ts";

export function declareAboutCommands(program: Command, act: Act): void {
  const doctor = program
    .command("doctor")
    .summary("say what this machine can do")
    .description("Check which drivers and isolation levels work here, and what is missing.")
    .action(() => act({ run: async (context) => (await import("../commands/doctor.ts")).doctor(context) }));
  examples(doctor, [["aido doctor", "before the first sandbox, or when one fails"]]);
  declareEvidence(program, act);
  const completion = program
    .command("completion")
    .summary("print a completion script for your shell")
    .description("Print a completion script.")
    .argument("<shell>", "bash, zsh or fish")
    .action((shell: string) =>
      act({
        run: async (context) =>
          (await import("../commands/completion.ts")).completion(context, program, shell),
      }),
    );
  examples(completion, [
    ["source <(aido completion bash)", "in ~/.bashrc"],
    ["aido completion fish | source", "in config.fish"],
  ]);
  const config = program.command("config").description("Show the configuration");
  const show = config
    .command("show")
    .summary("print every setting and where it came from")
    .description("Print every setting, its value and where it came from.")
    .action(() =>
      act({ run: async (context) => (await import("../commands/show-config.ts")).showConfig(context) }),
    );
  examples(show, [["aido config show --json", "as a JSON array"]]);
  const ui = program
    .command("ui")
    .summary("the terminal interface (coming soon)")
    .description("The terminal interface. It is not there yet; says what to use instead.")
    .action(() => act({ run: async (context) => (await import("../commands/ui.ts")).ui(context) }));
  examples(ui, [["aido ui", "what to use until then"]]);
}

function declareEvidence(program: Command, act: Act): void {
  const evidence = program
    .command("evidence")
    .summary("show and verify what happened in a sandbox")
    .description(
      "Show what happened in a sandbox, also after it was destroyed, or verify that the record is whole.",
    );
  const show = evidence
    .command("show", { isDefault: true })
    .summary("print a sandbox's record")
    .description("Print a sandbox's record, oldest first.")
    .argument("<sandbox>", "the sandbox's id")
    .action((sandbox: string) =>
      act({
        streams: true,
        run: async (context) => (await import("../commands/evidence.ts")).showEvidence(context, sandbox),
      }),
    );
  const verify = evidence
    .command("verify")
    .summary("check that nothing was changed or removed")
    .description(
      "Check every line of the record of one sandbox, or of all: exit 5 when one was changed or removed.",
    )
    .argument("[sandbox]", "the sandbox's id")
    .action((sandbox: string | undefined) =>
      act({
        run: async (context) => (await import("../commands/evidence.ts")).verifyEvidence(context, sandbox),
      }),
    );
  examples(evidence, [
    ["aido evidence ab12cd34", "what happened"],
    ["aido evidence verify", "check all records"],
  ]);
  examples(show, [["aido evidence ab12cd34", "what happened"]]);
  examples(verify, [["aido evidence verify ab12cd34", "check one"]]);
}
