import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { MAIN } from "./aido-process.ts";
import type { Project } from "./project.ts";

export type Step =
  | { expect: string }
  | { send: string }
  | { resize: [rows: number, cols: number] }
  | { signal: "SIGTERM" | "SIGINT" | "SIGHUP" };

export interface TerminalOutcome {
  output: string;
  code: number;
  /** Whether the terminal's modes are as they were. */
  restored: boolean;
  failure: string | null;
}

/** Runs `aido` on a real terminal, as a user at a keyboard does. */
export async function onTerminal(
  project: Pick<Project, "globals" | "directory">,
  argv: readonly string[],
  steps: readonly Step[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<TerminalOutcome> {
  const driver = new URL("./terminal.py", import.meta.url).pathname;
  const child = spawn("python3", [driver], { env, stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  const full = [process.execPath, MAIN, ...project.globals, ...argv];
  child.stdin.end(JSON.stringify({ argv: full, cwd: project.directory, steps }));
  const [output] = await Promise.all([text(child.stdout), closed]);
  return JSON.parse(output) as TerminalOutcome;
}
