import type { Aggregation } from "./job-requests.ts";

export interface SandboxCreateResult {
  sandboxId: string;
  sidecarUrl: string;
  /** Shown here and never again. */
  token: string;
  sshPort: number | null;
}

export interface SnapshotResult {
  sandboxId: string;
  url: string;
  sha256: string;
  bytes: number;
  createdAt: string;
}

export interface ExecJobResult {
  /** 124 after a timeout. */
  exitCode: number;
  stdout: string;
  stderr: string;
  /** There was more output than an answer carries; all of it is recorded with the exec. */
  truncated?: true;
}

export interface PromptResult {
  success: boolean;
  response: string;
  error: string;
  traceId: string;
  durationMs: number;
  inputTokens: number;
  outputTokens: number;
}

export interface TaskResult {
  success: boolean;
  result: string;
  error: string;
  traceId: string;
  durationMs: number;
  inputTokens: number;
  outputTokens: number;
  sessionId: string;
}

/** What became of one part of a batch that failed; the other parts are not touched by it. */
export interface BatchFailure {
  error: { code: string; message: string; hint?: string | undefined };
}
export type BatchItem<Result> = (Result | BatchFailure) & { sidecarUrl?: string };

/** What several answers come to. */
export interface BatchAggregate {
  aggregation: Aggregation;
  success: boolean;
  result: string;
  /** Places of the results that say so. */
  from: readonly number[];
}

export interface BatchCreateResult {
  batchId: string;
  sandboxes: readonly BatchItem<SandboxCreateResult>[];
}
export interface BatchTaskResult {
  batchId: string;
  taskResults: readonly BatchItem<TaskResult>[];
  /** Only when another aggregation than `all` was asked for. */
  aggregate?: BatchAggregate;
}
export interface BatchExecResult {
  batchId: string;
  execResults: readonly BatchItem<ExecJobResult>[];
}
export type BatchKind = "create" | "task" | "exec";
/** `lost` means that its server ended before it did. */
export type BatchState = "running" | "done" | "cancelled" | "lost";
export interface BatchInfo {
  id: string;
  kind: BatchKind;
  state: BatchState;
  count: number;
  ended: number;
  failed: number;
  createdAt: Date;
  endedAt: Date | undefined;
  /** When its results are forgotten. */
  expiresAt: Date;
}
export interface BatchCollectResult {
  batchId: string;
  kind: BatchKind;
  results: readonly BatchItem<object>[];
  aggregate?: BatchAggregate;
}

export interface SshProvisionResult {
  sandboxId: string;
  username: string;
  provisioned: true;
  /** Null where no SSH server runs. */
  sshPort: number | null;
}
export interface SshRevokeResult {
  sandboxId: string;
  username: string;
  revoked: true;
}
