import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { AidoError, findJob, type JobName } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printableJson } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { interruptible } from "./interrupt.ts";

export interface JobOptions {
  jsonArgs?: string;
  file?: string;
}

export async function listJobs(context: CliContext): Promise<number> {
  const aido = await context.open();
  const jobs = await aido.jobs.list();
  await printResult(context, jobs, () =>
    table(
      jobs,
      [
        { title: "ID", value: ({ id }) => String(id), align: "right" },
        { title: "NAME", value: ({ name }) => name },
        { title: "DOES", value: ({ summary }) => summary, flexible: true },
      ],
      context.stdout.columns,
    ),
  );
  return 0;
}

export async function runJob(
  context: CliContext,
  job: string,
  pairs: readonly string[],
  options: JobOptions,
): Promise<number> {
  const name = findJob(job);
  if (name === undefined) {
    throw new AidoError("VALIDATION_ERROR", `There is no job "${job}"`, {
      hint: "`aido job list` shows all there are.",
    });
  }
  const request = { ...(await readArguments(context, options)), ...toFields(pairs) };
  const aido = await context.open({ launches: name === "SANDBOX_CREATE" || name === "BATCH_CREATE" });
  return await interruptible(context, async (signal) => {
    // The request is checked where the job runs.
    const result = await aido.jobs.run<JobName>(name, request as never, { signal });
    await printResult(context, result, () => `${printableJson(result, 2)}\n`);
    return 0;
  });
}

async function readArguments(context: CliContext, options: JobOptions): Promise<object> {
  if (options.jsonArgs !== undefined && options.file !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "--json-args and --file exclude each other");
  }
  if (options.jsonArgs !== undefined) return toObject(options.jsonArgs, "--json-args");
  if (options.file === undefined) return {};
  const text = options.file === "-" ? await readAll(context) : await readText(context, options.file);
  return toObject(text, options.file);
}

async function readText(context: CliContext, file: string): Promise<string> {
  try {
    return await readFile(resolve(context.cwd, file), "utf8");
  } catch (cause) {
    throw new AidoError("VALIDATION_ERROR", `Cannot read ${file}`, { cause });
  }
}

async function readAll(context: CliContext): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of context.stdin.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function toObject(text: string, source: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new AidoError("VALIDATION_ERROR", `${source} is not a JSON object`, {
    hint: 'Write it like {"sidecar_url": "…", "command": "ls"}.',
  });
}

/** `command=ls`; a name that comes again makes a list, and `template_request.image=x` is a field within a field. */
function toFields(pairs: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) {
      throw new AidoError("VALIDATION_ERROR", `"${pair}" is not a field of the request`, {
        hint: "Write fields as name=value, such as command='ls -l'.",
      });
    }
    set(fields, pair.slice(0, at).split("."), pair.slice(at + 1));
  }
  return fields;
}

function set(fields: Record<string, unknown>, [name = "", ...rest]: readonly string[], value: string): void {
  const known = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (rest.length > 0) {
    const inner = typeof known === "object" && known !== null ? (known as Record<string, unknown>) : {};
    set(inner, rest, value);
    define(fields, name, inner);
  } else if (known === undefined) define(fields, name, value);
  else define(fields, name, [known, value].flat());
}

function define(fields: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}
