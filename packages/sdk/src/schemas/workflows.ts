import { z } from "zod";
import type { WorkflowStep } from "../protocol/workflow.ts";
import { jsonObject, named, text, uint } from "./job-values.ts";
import { date } from "./values.ts";

const MAX_TEXT = 1_000_000;
const MAX_STEPS = 100;
const DEFAULT_TURNS = 4;
const DEFAULT_TIMEOUT_MS = 60_000;

const work = {
  prompt: text.max(MAX_TEXT).default(""),
  sessionId: text.max(255).default(""),
  maxTurns: uint,
  model: text.max(255).default(""),
  contextJson: jsonObject,
  command: text.max(MAX_TEXT).default(""),
  cwd: text.max(4096).default(""),
  envJson: jsonObject,
  timeoutMs: uint,
};
const step = { name: text.max(255).default(""), ...work };
type Work = z.infer<z.ZodObject<typeof step>>;

const task = named({
  sidecarUrl: text.max(2048).default(""),
  sidecarToken: text.max(256).default(""),
  ...work,
  steps: z.array(named(step)).max(MAX_STEPS).default([]),
});

export interface WorkflowTask {
  sidecarUrl: string;
  sidecarToken: string;
  steps: WorkflowStep[];
}

/** Reads a `workflow_json`: one prompt, one command, or steps of either kind. Raises what is wrong with it. */
export function parseWorkflow(workflow: unknown): WorkflowTask {
  const { steps, sidecarUrl, sidecarToken, ...alone } = task.parse(workflow);
  const isAlone = alone.prompt !== "" || alone.command !== "";
  if (isAlone && steps.length > 0)
    throw wrong(["steps"], "stand for themselves: no prompt or command beside");
  if (!isAlone && steps.length === 0) throw wrong(["prompt"], "is missing: a prompt, a command, or steps");
  const all = isAlone ? [{ name: "", ...alone }] : steps;
  return { sidecarUrl, sidecarToken, steps: all.map(toStep) };
}

const trigger = z.strictObject({
  cron: z.string().max(255),
  timezone: z.string().max(64).default("UTC"),
  missed: z.enum(["run", "skip"]).default("run"),
  overlap: z.enum(["skip", "queue"]).default("skip"),
});

/** Reads a `trigger_config` of a schedule: the six fields alone, or an object with them. */
export function parseCronTrigger(config: string) {
  const value = config.trim();
  return trigger.parse(value.startsWith("{") ? parseJson(value) : { cron: value });
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw wrong(["triggerConfig"], 'is not JSON, such as {"cron":"0 0 3 * * *","timezone":"Europe/Berlin"}');
  }
}

function toStep(from: Work, at: number): WorkflowStep {
  const { prompt, command, cwd, envJson, sessionId, maxTurns, model, contextJson } = from;
  if ((prompt === "") === (command === "")) {
    throw wrong(["steps", at], "has a prompt or a command, one of them");
  }
  const name = from.name || `step ${at + 1}`;
  const timeoutMs = from.timeoutMs || DEFAULT_TIMEOUT_MS;
  if (prompt === "") return { kind: "command", name, command, cwd, envJson, timeoutMs };
  const turns = maxTurns || DEFAULT_TURNS;
  return { kind: "agent", name, prompt, sessionId, maxTurns: turns, model, contextJson, timeoutMs };
}

function wrong(path: (string | number)[], message: string): z.ZodError {
  return new z.ZodError([{ code: "custom", path, message, input: undefined }]);
}

const json = z.record(z.string(), z.unknown());
const stepReply = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("agent"),
    name: z.string(),
    prompt: z.string(),
    sessionId: z.string(),
    maxTurns: z.number(),
    model: z.string(),
    contextJson: json,
    timeoutMs: z.number(),
  }),
  z.object({
    kind: z.literal("command"),
    name: z.string(),
    command: z.string(),
    cwd: z.string(),
    envJson: json,
    timeoutMs: z.number(),
  }),
]);

export const workflowReply = z.object({
  id: z.number(),
  name: z.string(),
  trigger: z.discriminatedUnion("type", [
    z.object({ type: z.literal("manual") }),
    z.object({
      type: z.literal("cron"),
      cron: z.string(),
      timezone: z.string(),
      missed: z.enum(["run", "skip"]),
      overlap: z.enum(["skip", "queue"]),
    }),
  ]),
  steps: z.array(stepReply),
  sandboxId: z.string().optional(),
  sandboxConfigJson: z.string(),
  active: z.boolean(),
  runId: z.string().optional(),
  failures: z.number(),
  createdAt: date,
  updatedAt: date,
  lastRunAt: date.optional(),
  nextRunAt: date.optional(),
});
export type WorkflowReply = z.infer<typeof workflowReply>;
export const workflowListQuery = z.strictObject({
  activeOnly: z.enum(["true", "false"]).optional(),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
  before: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
});
export const workflowListReply = z.object({ workflows: z.array(workflowReply) });

const taskReply = z.object({
  success: z.boolean(),
  result: z.string(),
  error: z.string(),
  traceId: z.string(),
  durationMs: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  sessionId: z.string(),
});
export const workflowRunReply = z.object({
  id: z.string(),
  workflowId: z.number(),
  trigger: z.enum(["manual", "cron"]),
  state: z.enum(["running", "done", "failed", "cancelled", "lost", "skipped"]),
  scheduledFor: date.optional(),
  startedAt: date,
  endedAt: date.optional(),
  sandboxId: z.string().optional(),
  steps: z.array(
    taskReply.extend({
      name: z.string(),
      kind: z.enum(["agent", "command"]),
      exitCode: z.number().optional(),
      truncated: z.boolean().optional(),
    }),
  ),
  task: taskReply.optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  evidence: z.object({ entries: z.number(), hash: z.string() }).optional(),
});
export type WorkflowRunReply = z.infer<typeof workflowRunReply>;
export const workflowRunsReply = z.object({ runs: z.array(workflowRunReply) });
export const workflowRunsQuery = z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) });
