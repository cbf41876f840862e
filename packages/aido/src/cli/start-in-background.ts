import { spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import type { BackgroundProcess } from "./context.ts";

/** The same program again, in a session of its own: closing the terminal does not reach it. */
export function startInBackground(
  process: Pick<NodeJS.Process, "execPath" | "execArgv" | "argv" | "env">,
  argv: readonly string[],
  log: string,
): BackgroundProcess {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
  const file = openSync(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  try {
    const program = process.argv[1];
    const child = spawn(
      process.execPath,
      [...process.execArgv, ...(program === undefined ? [] : [program]), ...argv],
      {
        detached: true,
        stdio: ["ignore", file, file],
        env: process.env,
      },
    );
    let hasEnded = false;
    const ended = () => {
      hasEnded = true;
    };
    child.once("error", ended);
    child.once("exit", ended);
    child.unref();
    return { pid: child.pid, isRunning: () => !hasEnded };
  } finally {
    closeSync(file);
  }
}
