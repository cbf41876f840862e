import { type AidoError, toAidoError } from "@aido/sdk/protocol";
import type { ByteSink } from "./byte-sink.ts";
import { printableJson, printableLines } from "./printable.ts";

export interface ErrorOutput {
  stdout: ByteSink;
  stderr: ByteSink;
  json: boolean;
  verbose: boolean;
}

/** The one place where a failure becomes text. Returns the exit code of its kind. */
export async function printError(thrown: unknown, output: ErrorOutput): Promise<number> {
  const error = toAidoError(thrown);
  if (output.json) {
    await output.stdout.write(`${printableJson(error.toBody())}\n`);
    return error.exitCode;
  }
  const lines = [`aido: ${error.message}`];
  if (error.hint !== undefined) lines.push(`hint: ${error.hint}`);
  if (error.code === "INTERNAL_SERVER_ERROR" && !output.verbose) {
    lines.push(`hint: ${isAboutPath(error.cause) ? PATH_HINT : BUG_HINT}`);
  }
  if (output.verbose) lines.push(...explain(error));
  await output.stderr.write(`${lines.map(printableLines).join("\n")}\n`);
  return error.exitCode;
}

const MOST_CAUSES = 8;
const BUG_HINT = "This looks like a bug in aido. Run it again with --verbose to see where it happened.";
const PATH_HINT = "Check this path and its permissions; --verbose shows what was done with it.";
const PATH_CODES = ["EACCES", "EPERM", "EROFS", "ENOENT", "ENOTDIR", "EISDIR", "ELOOP", "ENAMETOOLONG"];

/** What this machine's files answered, which is more often their owner's doing than ours. */
function isAboutPath(cause: unknown): boolean {
  if (!(cause instanceof Error) || !("path" in cause) || typeof cause.path !== "string") return false;
  return "code" in cause && PATH_CODES.includes(String(cause.code));
}

function explain(error: AidoError): string[] {
  const lines = [`code: ${error.code}`];
  if (Object.keys(error.details).length > 0) lines.push(`details: ${JSON.stringify(error.details)}`);
  let cause: unknown = error.cause;
  for (let depth = 0; cause !== undefined && depth < MOST_CAUSES; depth += 1) {
    lines.push(`cause: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`);
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return lines;
}
