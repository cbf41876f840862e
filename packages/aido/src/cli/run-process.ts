import { EXIT } from "./commands/exit-code.ts";
import type { Backend, CliContext, GlobalOptions } from "./context.ts";
import { isBrokenPipe } from "./output/byte-sink.ts";
import { FdSink } from "./output/fd-sink.ts";
import { printError } from "./output/print-error.ts";
import { ProgressLine, type ProgressMode } from "./output/progress-line.ts";
import { ProcessKeyboard } from "./process-keyboard.ts";
import { ProcessSignals } from "./process-signals.ts";
import { runCli } from "./run-cli.ts";

export interface Invocation {
  argv: readonly string[];
  version: string;
  env: Readonly<Record<string, string | undefined>>;
}

const STDOUT = 1;
const STDERR = 2;

/** Joins the command line to a real process and ends it with the exit code. */
export async function runProcess(process: NodeJS.Process, invocation: Invocation): Promise<void> {
  const stdout = new FdSink(STDOUT, () => (process.stdout.isTTY ? process.stdout.columns || 80 : undefined));
  const stderr = new FdSink(STDERR, () => (process.stderr.isTTY ? process.stderr.columns || 80 : undefined));
  const backend = new LazyBackend();
  // What nobody awaited is a bug; it still ends with a sentence and not with a stack on the user's terminal.
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (thrown: unknown) => {
      if (isBrokenPipe(thrown)) return process.exit(0);
      void printError(thrown, { stdout, stderr, json: false, verbose: true }).finally(() =>
        process.exit(EXIT.aidoFailed),
      );
    });
  }
  const makeContext = (globals: GlobalOptions): CliContext => ({
    globals,
    stdin: new ProcessKeyboard(() => process.stdin),
    stdout,
    stderr,
    progress: new ProgressLine(stderr, progressMode(globals, stderr.isTerminal)),
    signals: new ProcessSignals(process),
    env: invocation.env,
    cwd: process.cwd(),
    version: invocation.version,
    now: () => new Date(),
    open: () => backend.open(globals, invocation.env),
  });
  const code = await runCli(invocation.argv, { version: invocation.version, makeContext });
  await backend.close();
  // Everything was written and closed; a terminal or a pipe on standard input must not hold the process.
  process.exit(code);
}

function progressMode(globals: GlobalOptions, terminal: boolean): ProgressMode {
  if (globals.quiet || (globals.json && !globals.verbose)) return "quiet";
  if (terminal) return "redraw";
  return globals.verbose ? "lines" : "quiet";
}

class LazyBackend {
  #opened: Promise<Backend> | undefined;

  open(globals: GlobalOptions, env: Invocation["env"]): Promise<Backend> {
    this.#opened ??= import("./open-backend.ts").then(({ openBackend }) => openBackend(globals, env));
    return this.#opened;
  }

  async close(): Promise<void> {
    const backend = await this.#opened?.catch(() => undefined);
    await backend?.aido.close();
  }
}
