import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { AidoError, findJob, type JobName } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseFields } from "../options/fields.ts";
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
  const request = { ...(await readArguments(context, options)), ...parseFields(pairs) };
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
