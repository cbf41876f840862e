import { z } from "zod";
import { JOBS, type JobName } from "../protocol/job.ts";
import { AGGREGATIONS } from "../protocol/job-requests.ts";
import { jsonObject, named, text, textList, truth, uint } from "./job-values.ts";
import { date } from "./values.ts";

const MAX_TEXT = 1_000_000;
const prompt = z.string().min(1).max(MAX_TEXT);
const batchId = text
  .max(64)
  .regex(/^([A-Za-z0-9_.-]*)$/, 'letters, digits, "_", "." and "-"')
  .default("");

const create = {
  name: text.max(63).default(""),
  image: text.max(512).default(""),
  stack: text.max(64).default(""),
  agentIdentifier: text.max(128).default(""),
  envJson: jsonObject,
  metadataJson: jsonObject,
  sshEnabled: truth,
  sshPublicKey: text.max(16_384).default(""),
  webTerminalEnabled: truth,
  maxLifetimeSeconds: uint,
  idleTimeoutSeconds: uint,
  cpuCores: uint,
  memoryMb: uint,
  diskGb: uint,
  sidecarToken: text.max(256).default(""),
};
const sandbox = { sandboxId: z.string().min(1).max(255) };
const sidecar = { sidecarUrl: z.string().min(1).max(2048), sidecarToken: text.max(256).default("") };
const sidecars = { sidecarUrls: textList, sidecarTokens: textList };
const agent = {
  sessionId: text.max(255).default(""),
  model: text.max(255).default(""),
  contextJson: jsonObject,
  timeoutMs: uint,
};
const command = {
  command: z.string().max(MAX_TEXT),
  cwd: text.max(4096).default(""),
  envJson: jsonObject,
  timeoutMs: uint,
};
const workflow = { workflowId: uint };
const sshKey = {
  sidecarUrl: sidecar.sidecarUrl,
  username: text.max(64).default(""),
  publicKey: z.string().min(1).max(16_384),
  sidecarToken: sidecar.sidecarToken,
};

/** The fields of every job's request, in the order in which they are encoded elsewhere. */
export const JOB_FIELDS = {
  SANDBOX_CREATE: z.strictObject(create),
  SANDBOX_STOP: z.strictObject(sandbox),
  SANDBOX_RESUME: z.strictObject(sandbox),
  SANDBOX_DELETE: z.strictObject(sandbox),
  SANDBOX_SNAPSHOT: z.strictObject({
    sidecarUrl: sidecar.sidecarUrl,
    destination: text.max(2048).default(""),
    includeWorkspace: truth,
    includeState: truth,
    sidecarToken: sidecar.sidecarToken,
  }),
  EXEC: z.strictObject({
    sidecarUrl: sidecar.sidecarUrl,
    ...command,
    sidecarToken: sidecar.sidecarToken,
  }),
  PROMPT: z.strictObject({
    sidecarUrl: sidecar.sidecarUrl,
    message: prompt,
    ...agent,
    sidecarToken: sidecar.sidecarToken,
  }),
  TASK: z.strictObject({
    sidecarUrl: sidecar.sidecarUrl,
    prompt,
    sessionId: agent.sessionId,
    maxTurns: uint,
    model: agent.model,
    contextJson: agent.contextJson,
    timeoutMs: agent.timeoutMs,
    sidecarToken: sidecar.sidecarToken,
  }),
  BATCH_CREATE: z.strictObject({
    count: uint,
    templateRequest: named(create).prefault({}),
    operators: textList,
    distribution: z.enum(["", "round_robin", "weighted", "all"]).default(""),
    batchId,
  }),
  BATCH_TASK: z.strictObject({
    ...sidecars,
    prompt,
    sessionId: agent.sessionId,
    maxTurns: uint,
    model: agent.model,
    contextJson: agent.contextJson,
    timeoutMs: agent.timeoutMs,
    parallel: truth,
    aggregation: z.enum(["", ...AGGREGATIONS]).default(""),
    batchId,
  }),
  BATCH_EXEC: z.strictObject({ ...sidecars, ...command, parallel: truth, batchId }),
  BATCH_COLLECT: z.strictObject({ batchId: z.string().min(1).max(255) }),
  WORKFLOW_CREATE: z.strictObject({
    name: text.max(255).default(""),
    workflowJson: z.string().min(1).max(MAX_TEXT),
    triggerType: z.enum(["", "manual", "cron"]).default(""),
    triggerConfig: text.max(1024).default(""),
    sandboxConfigJson: text.max(MAX_TEXT).default(""),
  }),
  WORKFLOW_TRIGGER: z.strictObject(workflow),
  WORKFLOW_CANCEL: z.strictObject(workflow),
  WORKFLOW_TICK: z.strictObject({}),
  SSH_PROVISION: z.strictObject(sshKey),
  SSH_REVOKE: z.strictObject(sshKey),
} satisfies Record<JobName, z.ZodObject>;

/** Checks a request and fills in what it leaves out. Names may be written `sidecarUrl` or `sidecar_url`. */
export function parseJob(name: JobName, request: unknown): unknown {
  return named(JOB_FIELDS[name].shape).parse(request ?? {});
}

const SUMMARIES: Readonly<Record<JobName, string>> = {
  SANDBOX_CREATE: "Make a sandbox with a sidecar API and a token of its own",
  SANDBOX_STOP: "Stop a sandbox; its files stay",
  SANDBOX_RESUME: "Start a stopped sandbox again, from wherever it is kept",
  SANDBOX_DELETE: "End a sandbox and remove all that is kept of it",
  SANDBOX_SNAPSHOT: "Write a sandbox's files to an object store",
  EXEC: "Run a shell command in a sandbox",
  PROMPT: "Ask the agent in a sandbox once",
  TASK: "Let the agent in a sandbox work for several turns",
  BATCH_CREATE: "Make up to 50 sandboxes",
  BATCH_TASK: "Give several sandboxes' agents a task",
  BATCH_EXEC: "Run a shell command in several sandboxes",
  BATCH_COLLECT: "Take the results of a batch",
  WORKFLOW_CREATE: "Keep a task that is run when asked for, or by a schedule",
  WORKFLOW_TRIGGER: "Run a workflow now",
  WORKFLOW_CANCEL: "Run a workflow no more",
  WORKFLOW_TICK: "Run the workflows that are due; aido's own scheduler only",
  SSH_PROVISION: "Let a key log in to a sandbox",
  SSH_REVOKE: "Let a key log in no more",
};

/** Every job with its request as JSON Schema. */
export function describeJobs(): { id: number; name: JobName; summary: string; request: object }[] {
  return (Object.keys(JOBS) as JobName[]).map((name) => {
    const { $schema: _, ...request } = z.toJSONSchema(JOB_FIELDS[name], {
      io: "input",
      unrepresentable: "any",
    }) as Record<string, unknown>;
    return { id: JOBS[name], name, summary: SUMMARIES[name], request };
  });
}

export const jobListReply = z.object({
  jobs: z.array(
    z.object({ id: z.number(), name: z.string(), summary: z.string(), request: z.looseObject({}) }),
  ),
});
export const jobBody = z.looseObject({});
export const jobReply = z.looseObject({});

export const batchReply = z.object({
  id: z.string(),
  kind: z.enum(["create", "task", "exec"]),
  state: z.enum(["running", "done", "cancelled", "lost"]),
  count: z.number(),
  ended: z.number(),
  failed: z.number(),
  createdAt: date,
  endedAt: date.optional(),
  expiresAt: date,
});
export type BatchReply = z.infer<typeof batchReply>;
export const batchListReply = z.object({ batches: z.array(batchReply) });
