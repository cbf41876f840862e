import { AidoError, toAidoError } from "@aido/sdk/protocol";
import { CommanderError } from "commander";
import { EXIT } from "./commands/exit-code.ts";
import type { CliContext, GlobalOptions } from "./context.ts";
import { isBrokenPipe } from "./output/byte-sink.ts";
import { printJsonLine } from "./output/print.ts";
import { printError } from "./output/print-error.ts";
import { type Action, failsWithOne } from "./program/act.ts";
import { buildProgram } from "./program/build-program.ts";
import { insertSeparator } from "./program/insert-separator.ts";

export interface CliSetup {
  version: string;
  makeContext: (globals: GlobalOptions) => Promise<CliContext>;
}

/** Parses, acts, and turns every outcome into an exit code. Throws nothing. */
export async function runCli(argv: readonly string[], { version, makeContext }: CliSetup): Promise<number> {
  let code = 0;
  const text: Text = { out: "", err: "", failsWithOne: false };
  const program = buildProgram(
    version,
    async (action) => {
      code = await perform(action, await makeContext(globalOptions(program.opts())));
    },
    argv,
  );
  // Commander's own text is kept and printed below, so that it takes the same way as all other output.
  configure(program, text);
  try {
    await program.parseAsync(insertSeparator(argv, program), { from: "user" });
    return code;
  } catch (thrown) {
    const context = await makeContext(globalOptions({ json: asksForJson(argv) }));
    if (!(thrown instanceof CommanderError)) return printError(thrown, errorOutput(context));
    return finish(thrown, text, context);
  }
}

async function perform(action: Action, context: CliContext): Promise<number> {
  try {
    return await action.run(context);
  } catch (thrown) {
    context.progress.clear();
    if (isBrokenPipe(thrown)) return 0;
    const exit = await report(thrown, action, context);
    if (action.passesExitCode) return EXIT.aidoFailed;
    return action.failsWithOne ? 1 : exit;
  }
}

async function report(thrown: unknown, action: Action, context: CliContext): Promise<number> {
  if (!action.streams || !context.globals.json) return printError(thrown, errorOutput(context));
  const error = toAidoError(thrown);
  await printJsonLine(context, { type: "error", ...error.toBody() });
  return error.exitCode;
}

type Configurable = ReturnType<typeof buildProgram>;

interface Text {
  out: string;
  err: string;
  /** The command that was misused is one of those. */
  failsWithOne: boolean;
}

function configure(command: Configurable, text: Text): void {
  const noteAndThrow = (error: CommanderError): never => {
    text.failsWithOne = failsWithOne.has(command);
    throw error;
  };
  command.exitOverride(noteAndThrow).configureOutput({
    writeOut: (part) => {
      text.out += part;
    },
    writeErr: (part) => {
      text.err += part;
    },
  });
  for (const child of command.commands) configure(child, text);
}

async function finish(thrown: CommanderError, text: Text, context: CliContext): Promise<number> {
  if (thrown.exitCode === 0 || text.err === "" || thrown.code === "commander.help") {
    await context.stdout.write(text.out).catch(() => undefined);
    await context.stderr.write(text.err).catch(() => undefined);
    return thrown.exitCode === 0 ? 0 : 2;
  }
  const [message = "", ...rest] = text.err.trim().split("\n");
  const hint = rest
    .map((line) => line.trim())
    .filter(Boolean)
    .join(" ");
  const error = new AidoError("VALIDATION_ERROR", message.replace(/^error: /, ""), { hint });
  const exit = await printError(error, errorOutput(context));
  return text.failsWithOne ? 1 : exit;
}

function errorOutput(context: CliContext) {
  const { json, verbose } = context.globals;
  return { stdout: context.stdout, stderr: context.stderr, json, verbose };
}

function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}

function globalOptions(options: Partial<GlobalOptions>): GlobalOptions {
  return {
    json: options.json ?? false,
    verbose: options.verbose ?? false,
    quiet: options.quiet ?? false,
    driver: options.driver,
    dataDir: options.dataDir,
    config: options.config,
    server: options.server,
  };
}
