import { SystemClock } from "../core/system-clock.ts";
import { HELP, readCommandLine } from "./command-line.ts";
import { runAdapter } from "./run-adapter.ts";

/** Put in by the bundler. */
declare const ADAPTER_VERSION: string;

const { stdin, stdout, stderr } = process;
const writeOut = stdout.write.bind(stdout);
// Standard output is for messages alone: what a library prints goes where logs go.
stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
// Work goes on although nobody listens any more: branches outlive whoever follows them.
stdout.on("error", () => undefined);
stderr.on("error", () => undefined);

const write = (text: string) => new Promise<void>((resolve) => writeOut(text, () => resolve()));
const log = (line: string) => void stderr.write(`${line}\n`);

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
      const stop = new AbortController();
      const { input } = commandLine;
      const clock = new SystemClock();
      return await runAdapter({ env: process.env, input, stdin, write, log, clock, signal: stop.signal });
    }
  }
}

void main().then((code) => process.exit(code));
