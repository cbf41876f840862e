import { z } from "zod";
import { MAX_DECLARED_OUTPUTS } from "../protocol/run.ts";
import { ISOLATIONS, NETWORKS } from "../protocol/sandbox.ts";
import { limits, MAX_TIMEOUT_MS } from "./sandbox.ts";
import {
  date,
  environment,
  filePath,
  labels,
  milliseconds,
  permissions,
  sandboxReference,
} from "./values.ts";

const MAX_FILES = 100_000;
const MAX_STEPS = 100;
const life = milliseconds.max(MAX_TIMEOUT_MS);
const innerPath = filePath.refine(
  (path) => path.split("/").every((part) => part !== "" && part !== "." && part !== ".."),
  'must be relative, without "." and ".."',
);

const file = z.strictObject({ path: innerPath, executable: z.boolean().optional() });
const step = z.strictObject({
  // Part of the names of its log files.
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'up to 40 of a-z, 0-9 and "-"'),
  task: innerPath,
  timeoutMs: life,
  env: environment,
});

/** A `sandbox.yaml` with its units converted. */
export const runSpec = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'up to 63 of a-z, 0-9 and "-"'),
  runtime: z.string().min(1).max(255),
  ttlMs: life,
  inputs: z.array(filePath).max(MAX_FILES),
  outputs: z.array(filePath).max(MAX_DECLARED_OUTPUTS),
  limits,
  timeoutMs: life,
  env: environment,
  network: z.enum(NETWORKS),
  permissions: permissions.optional(),
  steps: z.array(step).max(MAX_STEPS),
});

const newRun = z.strictObject({
  task: file.optional(),
  hostNetwork: z.boolean().optional(),
  privileged: z.boolean().optional(),
});

/**
 * First frame of the body that makes a sandbox for runs; the content of `inputs`, then of `tasks`, then of the task
 * that is to be started follows.
 */
export const upBody = z.strictObject({
  spec: runSpec,
  specText: z.string().max(1024 * 1024),
  inputs: z.array(file).max(MAX_FILES),
  tasks: z.array(file).max(MAX_STEPS),
  autoDestroy: z.boolean().optional(),
  implicit: z.boolean().optional(),
  start: newRun.optional(),
  isolation: z.enum(ISOLATIONS).optional(),
  labels: labels.optional(),
});

/** First frame of the body that starts a run; the content of `task` follows if there is one. */
export const startRunBody = newRun.extend({
  sandbox: sandboxReference.optional(),
  autoDestroy: z.boolean().optional(),
});

export const runWaitQuery = z.strictObject({
  /** Milliseconds to wait for the end before answering. */
  wait: z.coerce.number().int().min(0).max(60_000).optional(),
});
const offset = z.coerce.number().int().nonnegative().optional();
export const runLogsQuery = z.strictObject({
  follow: z.enum(["true", "false"]).optional(),
  /** Go on after a break: everything of earlier steps, and what lies before the offsets, is left out. */
  step: z.string().max(64).optional(),
  stdoutOffset: offset,
  stderrOffset: offset,
  /** Of the run that was read before the break; another one is not taken for it. */
  startedAt: date.optional(),
});

const status = z.enum(["pending", "running", "completed", "failed", "timeout"]);
const stepReply = z.object({
  name: z.string(),
  task: z.string(),
  status: z.union([status, z.literal("skipped")]),
  exitCode: z.number().nullable(),
  durationMs: z.number().nullable(),
});
export const runReply = z.object({
  id: z.string(),
  sandbox: z.string(),
  status,
  task: z.string(),
  startedAt: z.string().nullable(),
  completedAt: z.string().nullable(),
  duration: z.number().nullable(),
  exitCode: z.number().nullable(),
  container: z.object({ id: z.string().nullable(), image: z.string(), programs: z.string().optional() }),
  autoDestroy: z.boolean(),
  steps: z.array(stepReply).optional(),
  error: z.string().optional(),
});
const summary = z.object({
  sandboxId: z.string(),
  status,
  task: z.string(),
  exitCode: z.number().nullable(),
  durationMs: z.number(),
  stdout: z.string(),
  stderr: z.string(),
  outputFiles: z.array(z.string()),
  missingOutputs: z.array(z.string()),
  skippedOutputs: z
    .object({
      total: z.number(),
      first: z.array(z.object({ path: z.string(), reason: z.string() })),
    })
    .optional(),
  startedAt: z.string(),
  completedAt: z.string(),
  steps: z.array(stepReply).optional(),
  error: z.string().optional(),
});
/** Null while the run has not ended. */
export const summaryReply = z.object({ summary: summary.nullable() });
