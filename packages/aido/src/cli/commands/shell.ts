import type { CliContext } from "../context.ts";
import { parsePairs } from "../options/pairs.ts";
import { terminal } from "./terminal.ts";

export interface ShellOptions {
  shell?: string;
  user?: string;
  cwd?: string;
  env?: readonly string[];
}

/** The best shell an image has; the script is a constant, nothing is put into it. */
const BEST_SHELL = ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

export async function shell(context: CliContext, sandbox: string, options: ShellOptions): Promise<number> {
  const aido = await context.open({ sandbox });
  return terminal(context, aido, {
    sandbox,
    request: {
      argv: options.shell === undefined ? BEST_SHELL : [options.shell],
      env: parsePairs(options.env ?? [], "--env", (name) => context.env[name]),
      cwd: options.cwd,
      user: options.user,
      stdin: true,
    },
  });
}
