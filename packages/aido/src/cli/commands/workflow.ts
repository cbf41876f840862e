import { readFileSync } from "node:fs";
import { AidoError, type WorkflowInfo, type WorkflowRunInfo, type WorkflowTrigger } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { parseFields } from "../options/fields.ts";
import { parseNumber } from "../options/numbers.ts";
import { formatAge, formatUntil } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { printableLines } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { interruptible } from "./interrupt.ts";

export interface CreateWorkflowOptions {
  prompt?: string;
  command?: readonly string[];
  file?: string;
  cron?: string;
  timezone?: string;
  missed?: string;
  overlap?: string;
  sandbox?: string;
  token?: string;
  set?: readonly string[];
  timeout?: string;
  model?: string;
  maxTurns?: string;
}

export async function createWorkflow(
  context: CliContext,
  name: string,
  options: CreateWorkflowOptions,
): Promise<number> {
  const { cron, timezone, missed, overlap } = options;
  if (cron === undefined && (timezone ?? missed ?? overlap) !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "--timezone, --missed and --overlap are about a schedule", {
      hint: 'Give one with --cron "0 30 3 * * *".',
    });
  }
  const request = {
    name,
    workflowJson: workflowJson(options),
    ...(cron === undefined
      ? {}
      : {
          triggerType: "cron" as const,
          triggerConfig: JSON.stringify({ cron, timezone, missed, overlap }),
        }),
    sandboxConfigJson: JSON.stringify(parseFields(options.set ?? [])),
  };
  const aido = await context.open();
  const created = await aido.workflows.create(request);
  const next = created.nextRunAt === null ? "" : `, next run ${created.nextRunAt}`;
  await printResult(context, created, () => `Workflow ${created.workflowId} is active${next}\n`);
  return 0;
}

export async function listWorkflows(
  context: CliContext,
  options: { active?: boolean } = {},
): Promise<number> {
  const aido = await context.open();
  const workflows = await aido.workflows.list({ activeOnly: options.active === true });
  const now = context.now();
  await printResult(context, workflows, () => {
    if (workflows.length === 0) return "";
    return table<WorkflowInfo>(
      workflows,
      [
        { title: "ID", value: ({ id }) => String(id), align: "right" },
        { title: "NAME", value: ({ name }) => name },
        { title: "TRIGGER", value: ({ trigger }) => triggerText(trigger) },
        { title: "STATE", value: stateOf },
        { title: "FAILURES", value: ({ failures }) => String(failures), align: "right" },
        { title: "LAST RUN", value: ({ lastRunAt }) => (lastRunAt ? formatAge(lastRunAt, now) : "-") },
        { title: "NEXT RUN", value: ({ nextRunAt }) => (nextRunAt ? formatUntil(nextRunAt, now) : "-") },
      ],
      context.stdout.columns,
    );
  });
  if (workflows.length === 0) {
    await note(context, "No workflows. Make one with: aido workflow create nightly --command 'make test'");
  }
  return 0;
}

export async function triggerWorkflow(context: CliContext, id: string): Promise<number> {
  const workflowId = toId(id);
  const aido = await context.open({ launches: true });
  return await interruptible(context, async (signal) => {
    const result = await aido.workflows.trigger(workflowId, { signal });
    await printResult(context, result, () => {
      const { success, result: text, error } = result.task;
      return `${printableLines(success ? text : error).trimEnd()}\n`;
    });
    return result.task.success ? 0 : 1;
  });
}

export async function cancelWorkflow(context: CliContext, id: string): Promise<number> {
  const aido = await context.open();
  const result = await aido.workflows.cancel(toId(id));
  await printResult(context, result, () => `Workflow ${result.workflowId} is cancelled\n`);
  return 0;
}

export async function listWorkflowRuns(
  context: CliContext,
  id: string,
  options: { limit?: string },
): Promise<number> {
  const workflowId = toId(id);
  const limit = parseNumber(options.limit ?? "20", "--limit", { least: 1, most: 100, whole: true });
  const aido = await context.open();
  const runs = await aido.workflows.runs(workflowId, { limit });
  const now = context.now();
  await printResult(context, runs, () => {
    if (runs.length === 0) return "";
    return table<WorkflowRunInfo>(
      runs,
      [
        { title: "RUN", value: ({ id: run }) => run },
        { title: "BY", value: ({ trigger }) => trigger },
        { title: "STATE", value: ({ state }) => state },
        { title: "STARTED", value: ({ startedAt }) => formatAge(startedAt, now) },
        { title: "SANDBOX", value: ({ sandboxId }) => sandboxId ?? "-" },
        { title: "OUTPUT", value: outcomeOf },
      ],
      context.stdout.columns,
    );
  });
  if (runs.length === 0) await note(context, `No runs. Run it with: aido workflow trigger ${workflowId}`);
  return 0;
}

function workflowJson(options: CreateWorkflowOptions): string {
  const { prompt, command = [], file, sandbox, token, model } = options;
  const given = [prompt !== undefined, command.length > 0, file !== undefined].filter(Boolean).length;
  if (given !== 1) {
    throw new AidoError("VALIDATION_ERROR", "Give one of --prompt, --command and --file", {
      hint: "--command can be given several times: each is a step.",
    });
  }
  if (file !== undefined) return readFileSync(file === "-" ? 0 : file, "utf8");
  const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout, "--timeout");
  const maxTurns =
    options.maxTurns === undefined
      ? undefined
      : parseNumber(options.maxTurns, "--max-turns", { least: 1, most: 1000, whole: true });
  const place = { sidecar_url: sandbox, sidecar_token: token };
  if (prompt !== undefined) {
    return JSON.stringify({ ...place, prompt, model, max_turns: maxTurns, timeout_ms: timeoutMs });
  }
  return JSON.stringify({ ...place, steps: command.map((one) => ({ command: one, timeout_ms: timeoutMs })) });
}

function toId(id: string): number {
  return parseNumber(id, "<workflow>", { least: 0, most: Number.MAX_SAFE_INTEGER, whole: true });
}

function triggerText(trigger: WorkflowTrigger): string {
  return trigger.type === "manual" ? "manual" : `${trigger.cron} ${trigger.timezone}`;
}

function stateOf({ active, runId }: WorkflowInfo): string {
  if (runId !== undefined) return "running";
  return active ? "active" : "cancelled";
}

function outcomeOf({ task, error }: WorkflowRunInfo): string {
  const text = error?.message ?? (task?.success === false ? task.error : (task?.result ?? ""));
  return text.trim().split("\n").at(0) ?? "";
}
