import { SystemClock } from "../core/system-clock.ts";
import { HELP, readCommandLine } from "./command-line.ts";
import { logTo } from "./report/log-to.ts";
import { runAdapter } from "./run-adapter.ts";
import { Stopped } from "./stopped.ts";

/** Put in by the bundler. */
declare const ADAPTER_VERSION: string;

const INTERRUPTED = 130;
const { stdin, stdout, stderr } = process;
const writeOut = stdout.write.bind(stdout);
// Standard output is for messages alone: what a library prints goes where logs go.
stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
// Work goes on although nobody listens any more: branches outlive whoever follows them.
stdout.on("error", () => undefined);
stderr.on("error", () => undefined);

const write = (text: string) => new Promise<void>((resolve) => writeOut(text, () => resolve()));
const log = logTo(stderr);

async function main(): Promise<number> {
  const commandLine = readCommandLine(process.argv.slice(2));
  switch (commandLine.kind) {
    case "help":
      await write(HELP);
      return 0;
    case "version":
      await write(`${ADAPTER_VERSION}\n`);
      return 0;
    case "wrong":
      log(`acp-adapter: ${commandLine.problem}\n\n${HELP}`);
      return 1;
    case "run": {
      const { input } = commandLine;
      const ends = untilSignalled();
      return await runAdapter({
        env: process.env,
        input,
        stdin,
        write,
        log,
        clock: new SystemClock(),
        ...ends,
      });
    }
  }
}

/** The first signal asks for an orderly end; the second is the end, and the third does not even tell. */
function untilSignalled(): { signal: AbortSignal; abandon: AbortSignal } {
  const stop = new AbortController();
  const abandon = new AbortController();
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => {
      if (abandon.signal.aborted) process.exit(INTERRUPTED);
      const reason = new Stopped("signal", `The worker was stopped by ${name}`);
      (stop.signal.aborted ? abandon : stop).abort(reason);
    });
  }
  process.on("uncaughtException", (thrown) => abandon.abort(thrown));
  process.on("unhandledRejection", (thrown) => abandon.abort(thrown));
  return { signal: stop.signal, abandon: abandon.signal };
}

void main().then((code) => process.exit(code));
