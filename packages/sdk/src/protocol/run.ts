import type { Permissions } from "./permissions.ts";
import type { Network, ResourceLimits } from "./sandbox.ts";

export const RUN_STATUSES = ["pending", "running", "completed", "failed", "timeout"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** The runtimes with a name of their own; every other value is an image. */
export const RUNTIME_IMAGES = {
  python: "python:3.12-slim",
  node: "node:20-slim",
  bash: "ubuntu:22.04",
} as const;
export type RuntimeName = keyof typeof RUNTIME_IMAGES;

/** Each is compared with every file that a task leaves. */
export const MAX_DECLARED_OUTPUTS = 100;

/** What a `sandbox.yaml` says, with its units converted. */
export interface RunSpec {
  name: string;
  /** A name of RUNTIME_IMAGES or an image. */
  runtime: string;
  ttlMs: number;
  /** Patterns of project files that are copied to /inputs. */
  inputs: readonly string[];
  /** Paths or patterns beneath /outputs that the task is expected to write. */
  outputs: readonly string[];
  limits: Partial<ResourceLimits>;
  /** Limit of one task or step; 0 means none but the ttl. */
  timeoutMs: number;
  env: Readonly<Record<string, string>>;
  network: Network;
  /** Absent asks for nothing. */
  permissions?: Permissions | undefined;
  /** Empty for a sandbox that runs the tasks it is given. */
  steps: readonly StepSpec[];
}

export interface StepSpec {
  name: string;
  /** Relative to the project. */
  task: string;
  /** 0 means the spec's own limit. */
  timeoutMs: number;
  env: Readonly<Record<string, string>>;
}

/** The content of `run.json`, a public file format. */
export interface RunRecord {
  id: string;
  sandbox: string;
  status: RunStatus;
  task: string;
  startedAt: string | null;
  completedAt: string | null;
  duration: number | null;
  exitCode: number | null;
  /** `programs` is what stands for the image where the driver has none. */
  container: { id: string | null; image: string; programs?: string };
  autoDestroy: boolean;
  /** One entry per step of a pipeline; absent for a single task. */
  steps?: readonly StepRecord[];
  /** Why aido itself could not run the task or see it to its end. */
  error?: string;
}

export interface StepRecord {
  name: string;
  task: string;
  status: RunStatus | "skipped";
  exitCode: number | null;
  durationMs: number | null;
}

/** The content of `outputs/summary.json`, a public file format. */
export interface RunSummary {
  sandboxId: string;
  status: RunStatus;
  task: string;
  /** 124 after a timeout; null when nobody saw how the task ended. */
  exitCode: number | null;
  durationMs: number;
  stdout: string;
  stderr: string;
  outputFiles: readonly string[];
  /** Declared outputs that the task did not write. */
  missingOutputs: readonly string[];
  /** What the task left in /outputs and was not captured, the first of it with the reason; absent when all was. */
  skippedOutputs?: { total: number; first: readonly { path: string; reason: string }[] };
  startedAt: string;
  completedAt: string;
  steps?: readonly StepRecord[];
  error?: string;
}
