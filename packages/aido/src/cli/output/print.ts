import type { CliContext } from "../context.ts";
import { printableJson } from "./printable.ts";

/** One result: the JSON value with `--json`, otherwise the text. */
export async function printResult(context: CliContext, value: unknown, text: () => string): Promise<void> {
  await context.stdout.write(context.globals.json ? `${printableJson(value, 2)}\n` : text());
}

/** One line of a stream of JSON values. */
export async function printJsonLine(context: CliContext, value: unknown): Promise<void> {
  await context.stdout.write(`${printableJson(value)}\n`);
}

/** For people: not data, not an error. Silent with `--quiet` and `--json`. */
export async function note(context: CliContext, text: string): Promise<void> {
  if (context.globals.quiet || context.globals.json) return;
  await context.stderr.write(`${text}\n`).catch(() => undefined);
}

/** Said even with `--quiet` and `--json`: the result is not all that was asked for. */
export async function warn(context: CliContext, text: string): Promise<void> {
  await context.stderr.write(`warning: ${text}\n`).catch(() => undefined);
}
