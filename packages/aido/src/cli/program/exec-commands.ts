import type { Command } from "commander";
import { type Act, collect } from "./act.ts";
import { examples } from "./examples.ts";

export function declareExecCommands(program: Command, act: Act): void {
  declareExec(program, act);
  declareShell(program, act);
  declareCopy(program, act);
  declareExecs(program, act);
}

function declareExec(program: Command, act: Act): void {
  const exec = program
    .command("exec")
    .summary("run a command in a running sandbox")
    .description(
      "Run a command in a running sandbox; pass its output, exit code and signals through. Options stand before the command.",
    )
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("<command...>", "the command and its arguments; `--` before it is allowed")
    .option("-i, --interactive", "pass standard input on")
    .option("-t, --tty", "give it a terminal")
    .option("-e, --env <NAME=value>", "set a variable; NAME alone passes its value on (repeatable)", collect)
    .option("-w, --cwd <path>", "where it starts")
    .option("-u, --user <user>", "who it runs as")
    .option("--timeout <duration>", "most time it may take, such as 30s")
    .option("-d, --detach", "print the exec's id and do not wait")
    .option("--auto-resume", "start the sandbox first when it is stopped")
    .action((sandbox: string, command: string[], options: object) =>
      act({
        passesExitCode: true,
        streams: !("detach" in options),
        run: async (context) =>
          (await import("../commands/exec.ts")).exec(context, sandbox, command, options),
      }),
    );
  examples(exec, [
    ["aido exec web -- ls -la /work", "one command"],
    ["cat data.csv | aido exec -i web -- sort", "with input"],
    ["aido exec -it web -- python3", "on a terminal"],
    ["aido exec web --timeout 30s -- make test", "with a limit"],
  ]);
  exec.addHelpText(
    "after",
    "\nExit codes: the command's own; 124 its time was up; 125 aido itself failed; 128+n ended by signal n.",
  );
}

function declareShell(program: Command, act: Act): void {
  const shell = program
    .command("shell")
    .summary("open a shell in a running sandbox")
    .description("Open a shell on a terminal in a running sandbox.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .option("--shell <path>", "which shell (default: bash when the image has it, otherwise sh)")
    .option("-e, --env <NAME=value>", "set a variable; NAME alone passes its value on (repeatable)", collect)
    .option("-w, --cwd <path>", "where it starts")
    .option("-u, --user <user>", "who it runs as")
    .action((sandbox: string, options: object) =>
      act({
        passesExitCode: true,
        run: async (context) => (await import("../commands/shell.ts")).shell(context, sandbox, options),
      }),
    );
  examples(shell, [["aido shell web", "leave it with exit or Ctrl-D"]]);
}

function declareCopy(program: Command, act: Act): void {
  const copy = program
    .command("cp")
    .summary("copy files into and out of a sandbox")
    .description(
      "Copy a file or a directory between this machine and a sandbox. One side is written <sandbox>:<path>. A target that is a directory, or ends with /, receives the copy inside it.",
    )
    .argument("<source>", "a path here, or <sandbox>:<path>")
    .argument("<target>", "a path here, or <sandbox>:<path>")
    .action((source: string, target: string) =>
      act({ run: async (context) => (await import("../commands/copy.ts")).copy(context, source, target) }),
    );
  examples(copy, [
    ["aido cp data.csv web:/work/", "into it"],
    ["aido cp web:/work/report ./report", "out of it, directories too"],
  ]);
}

function declareExecs(program: Command, act: Act): void {
  const execs = program
    .command("ps")
    .summary("list what ran and runs in a sandbox")
    .description("List a sandbox's execs.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .action((sandbox: string) =>
      act({
        run: async (context) => (await import("../commands/list-execs.ts")).listExecs(context, sandbox),
      }),
    );
  examples(execs, [["aido ps web", "with how each ended"]]);
  const kill = program
    .command("kill")
    .summary("signal an exec")
    .description("Send a signal to an exec and all it started. After TERM, what still lives is killed.")
    .argument("<sandbox>", "id, unique beginning of an id, or name")
    .argument("<exec>", "the exec's id, as `aido ps` shows it")
    .option("-s, --signal <name>", "TERM (default), KILL, INT, HUP…")
    .action((sandbox: string, exec: string, options: object) =>
      act({
        run: async (context) =>
          (await import("../commands/list-execs.ts")).killExec(context, sandbox, exec, options),
      }),
    );
  examples(kill, [["aido kill web 7Gk2 --signal KILL", "at once"]]);
}
