import { z } from "zod";
import { END_REASONS, ISOLATIONS, NETWORKS, PROFILES, SANDBOX_STATES, TIERS } from "../protocol/sandbox.ts";
import {
  cpuText,
  date,
  environment,
  labels,
  memoryText,
  milliseconds,
  permissions,
  sandboxToken,
} from "./values.ts";

export const MIN_TIMEOUT_MS = 1_000;
/** 30 days. */
export const MAX_TIMEOUT_MS = 2_592_000_000;
const timeout = z.number().int().min(MIN_TIMEOUT_MS).max(MAX_TIMEOUT_MS);

export const limits = z
  .strictObject({
    cpus: z.number().positive().max(1024),
    memoryBytes: z
      .number()
      .int()
      .min(6 * 1024 * 1024),
    pids: z.number().int().min(1).max(4_194_304),
    diskBytes: z.number().int().nonnegative(),
    openFiles: z.number().int().min(16).max(1_048_576),
    outputBytes: z.number().int().nonnegative(),
    swapBytes: z.number().int().nonnegative(),
  })
  .partial();

/** `image` and `options`, and what else a sandbox can be given. */
export const createSandboxBody = z.strictObject({
  image: z.string().min(1).max(512).optional(),
  options: z
    .strictObject({
      timeout: timeout.optional(),
      memoryLimit: memoryText.optional(),
      cpuLimit: cpuText.optional(),
    })
    .optional(),
  name: z.string().min(1).max(63).optional(),
  profile: z.enum(PROFILES).optional(),
  isolation: z.enum(ISOLATIONS).optional(),
  workdir: z.string().min(1).max(4096).startsWith("/").optional(),
  user: z.string().min(1).max(64).optional(),
  env: environment.optional(),
  network: z.enum(NETWORKS).optional(),
  limits: limits.optional(),
  /** 0 means no end. */
  ttlMs: milliseconds.max(MAX_TIMEOUT_MS).optional(),
  /** Stop it when nobody has used it for so long; 0 means never. */
  idleTimeoutMs: milliseconds.max(MAX_TIMEOUT_MS).optional(),
  /** Start it again when it is stopped and somebody uses it. */
  autoResume: z.boolean().optional(),
  /** Name of a workspace to have as its working directory; made when it is new. */
  workspace: z.string().min(1).max(63).optional(),
  /** Address of the object that its snapshots go to instead of the operator's place. */
  snapshotDestination: z.string().min(1).max(4096).optional(),
  labels: labels.optional(),
  history: z.boolean().optional(),
  /** As far as the operator of the server allows them. */
  permissions: permissions.optional(),
  /** Dangerous: full privileges of the engine; for administrators. */
  privileged: z.boolean().optional(),
  /** Of its sidecar API, to choose it oneself. */
  token: sandboxToken.optional(),
});
export type CreateSandboxBody = z.infer<typeof createSandboxBody>;

export const sandboxStatus = z.enum(["created", "running", "stopped", "deleted"]);

export const sandboxReply = z.object({
  containerId: z.string(),
  status: sandboxStatus,
  createdAt: date,
  expiresAt: date.nullable(),
  id: z.string(),
  name: z.string().nullable(),
  profile: z.enum(PROFILES),
  image: z.string(),
  /** What it really runs where the driver has no images. */
  programs: z.string().optional(),
  driver: z.string(),
  isolation: z.enum(ISOLATIONS),
  state: z.enum(SANDBOX_STATES),
  endReason: z.enum(END_REASONS).nullable(),
  engineId: z.string().nullable(),
  workdir: z.string(),
  network: z.enum(NETWORKS),
  limits: limits.required().partial({ swapBytes: true }),
  labels,
  startedAt: date.nullable(),
  stoppedAt: date.nullable(),
  idleTimeoutMs: milliseconds,
  autoResume: z.boolean(),
  lastActivityAt: date,
  /** What is being done to start it. */
  phase: z.string().nullable(),
  /** Of the sidecar API; null when it has none. */
  sidecarUrl: z.string().nullable(),
  tier: z.enum(TIERS).nullable(),
  tierSince: date.nullable(),
  workspace: z.string().nullable(),
  resourceUsage: z.object({ cpuUsage: z.string(), memoryUsage: z.string() }).optional(),
});
/** The token is in the first answer to the request that made the sandbox, and nowhere else. */
export const createdSandboxReply = sandboxReply.extend({ token: z.string().optional() });
export type CreatedSandboxReply = z.infer<typeof createdSandboxReply>;
export type SandboxReply = z.infer<typeof sandboxReply>;

export const sandboxListQuery = z.strictObject({
  state: z.string().optional(),
  label: z.union([z.string(), z.array(z.string())]).optional(),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
  before: z.string().max(255).optional(),
});
export const sandboxListReply = z.object({ sandboxes: z.array(sandboxReply), next: z.string().nullable() });

export const tokenBody = z.strictObject({ token: sandboxToken.optional() });
export const tokenReply = z.object({
  containerId: z.string(),
  sidecarUrl: z.string(),
  /** Shown this once. */
  token: z.string(),
});
export type TokenReply = z.infer<typeof tokenReply>;

export const deletedReply = z.object({ status: z.literal("deleted"), containerId: z.string() });
export const timeoutBody = z.strictObject({ timeout: z.union([z.literal(0), timeout]) });
export const stopBody = z.strictObject({ graceMs: milliseconds.max(600_000).optional() });
export const statsReply = z.object({
  cpuMs: z.number(),
  memoryBytes: z.number(),
  pids: z.number(),
  at: date,
});
