import { randomUUID } from "node:crypto";
import type { Aido } from "@aido/sdk";
import type { BatchInfo, BatchItem, JobName, JobRequest, JobResult } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { parseFields } from "../options/fields.ts";
import { parseNumber } from "../options/numbers.ts";
import { parsePairs } from "../options/pairs.ts";
import { printBatchItems } from "../output/batch-items.ts";
import { formatAge, formatUntil } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { table } from "../output/table.ts";
import { allSandboxes } from "./all-sandboxes.ts";
import { BatchProgress } from "./batch-progress.ts";
import { interruptible } from "./interrupt.ts";

export interface BatchTargets {
  sandbox?: readonly string[];
  token?: readonly string[];
  label?: readonly string[];
  sequential?: boolean;
  timeout?: string;
}

export interface BatchTaskOptions extends BatchTargets {
  session?: string;
  maxTurns?: string;
  model?: string;
  aggregation?: string;
}

type BatchJob = "BATCH_CREATE" | "BATCH_EXEC" | "BATCH_TASK";

const MOST = 50;

export async function batchCreate(
  context: CliContext,
  count: string,
  fields: readonly string[],
): Promise<number> {
  const request = {
    count: parseNumber(count, "<count>", { least: 1, most: MOST, whole: true }),
    templateRequest: parseFields(fields),
  };
  const aido = await context.open({ launches: true });
  return await run(context, aido, "BATCH_CREATE", request, ({ sandboxes }) => sandboxes);
}

export async function batchExec(
  context: CliContext,
  command: string,
  options: BatchTargets & { cwd?: string; env?: readonly string[] },
): Promise<number> {
  const aido = await context.open();
  const request = {
    ...(await targets(aido, options)),
    command,
    cwd: options.cwd ?? "",
    envJson: parsePairs(options.env ?? [], "--env", (name) => context.env[name]),
  };
  return await run(context, aido, "BATCH_EXEC", request, ({ execResults }) => execResults);
}

export async function batchTask(
  context: CliContext,
  prompt: string,
  options: BatchTaskOptions,
): Promise<number> {
  const aido = await context.open();
  const request = {
    ...(await targets(aido, options)),
    prompt,
    sessionId: options.session ?? "",
    maxTurns:
      options.maxTurns === undefined
        ? 0
        : parseNumber(options.maxTurns, "--max-turns", { least: 1, most: 1000, whole: true }),
    model: options.model ?? "",
    // Checked where the job runs, with a list of what there is.
    aggregation: (options.aggregation ?? "") as "",
  };
  return await run(context, aido, "BATCH_TASK", request, ({ taskResults }) => taskResults);
}

export async function batchCollect(context: CliContext, batchId: string): Promise<number> {
  const aido = await context.open();
  const result = await aido.jobs.run("BATCH_COLLECT", { batchId });
  return await show(context, result, result.results);
}

export async function batchCancel(context: CliContext, batchId: string): Promise<number> {
  const aido = await context.open();
  const batch = await aido.batches.cancel(batchId);
  await printResult(context, batch, () => `${batch.id} is ${batch.state}\n`);
  return 0;
}

export async function listBatches(context: CliContext): Promise<number> {
  const aido = await context.open();
  const batches = await aido.batches.list();
  const now = context.now();
  await printResult(context, batches, () => {
    if (batches.length === 0) return "";
    return table<BatchInfo>(
      batches,
      [
        { title: "BATCH", value: ({ id }) => id },
        { title: "KIND", value: ({ kind }) => kind },
        { title: "STATE", value: ({ state }) => state },
        { title: "ENDED", value: ({ ended, count }) => `${ended}/${count}`, align: "right" },
        { title: "FAILED", value: ({ failed }) => String(failed), align: "right" },
        { title: "CREATED", value: ({ createdAt }) => formatAge(createdAt, now) },
        { title: "KEPT FOR", value: ({ expiresAt }) => formatUntil(expiresAt, now) },
      ],
      context.stdout.columns,
    );
  });
  if (batches.length === 0) await note(context, "No batches. Make one with: aido batch create 5");
  return 0;
}

/** Runs a batch under an id of our own, so that it can be watched, and taken back when this is interrupted. */
async function run<Job extends BatchJob>(
  context: CliContext,
  aido: Aido,
  job: Job,
  request: JobRequest<Job>,
  itemsOf: (result: JobResult<Job>) => readonly BatchItem<object>[],
): Promise<number> {
  const batchId = `batch-${randomUUID()}`;
  return await interruptible(context, async (signal) => {
    const progress = new BatchProgress(context, aido.batches, batchId);
    let result: JobResult<Job>;
    try {
      const asked = { ...request, batchId } as never;
      result = (await aido.jobs.run<JobName>(job, asked, { signal })) as JobResult<Job>;
    } catch (thrown) {
      if (signal.aborted) await cancel(context, aido, batchId);
      throw thrown;
    } finally {
      await progress.stop();
    }
    return await show(context, result, itemsOf(result));
  });
}

async function cancel(context: CliContext, aido: Aido, batchId: string): Promise<void> {
  await aido.batches.cancel(batchId);
  await note(context, `Cancelled. What has ended: aido batch collect ${batchId}`);
}

async function targets(aido: Aido, options: BatchTargets) {
  const labels = parsePairs(options.label ?? [], "--label");
  const labelled =
    Object.keys(labels).length === 0 ? [] : await allSandboxes(aido, { labels, states: ["running"] });
  const timeoutMs = options.timeout === undefined ? 0 : parseDuration(options.timeout, "--timeout");
  return {
    // Oldest first: in the order in which they were made.
    sidecarUrls: [...(options.sandbox ?? []), ...labelled.map(({ id }) => id).reverse()],
    sidecarTokens: [...(options.token ?? [])],
    parallel: options.sequential !== true,
    timeoutMs,
  };
}

async function show(
  context: CliContext,
  result: object,
  items: readonly BatchItem<object>[],
): Promise<number> {
  await printResult(context, result, () => printBatchItems(result, items, context.stdout.columns));
  return items.some(hasFailed) ? 1 : 0;
}

function hasFailed(item: object): boolean {
  const { error, exitCode, success } = item as { error?: unknown; exitCode?: number; success?: boolean };
  return (typeof error === "object" && error !== null) || (exitCode ?? 0) !== 0 || success === false;
}
