import type { TaskResult } from "./job-results.ts";
import type { WorkflowConfig } from "./workflow-config.ts";

export type WorkflowStep = AgentStep | CommandStep;

/** Work for the agent in the sandbox. */
export interface AgentStep {
  kind: "agent";
  name: string;
  prompt: string;
  /** Empty: that of the agent step before, or a new one. */
  sessionId: string;
  maxTurns: number;
  model: string;
  contextJson: Readonly<Record<string, unknown>>;
  timeoutMs: number;
}

export interface CommandStep {
  kind: "command";
  name: string;
  command: string;
  cwd: string;
  envJson: Readonly<Record<string, unknown>>;
  timeoutMs: number;
}

/** What becomes of a time that has passed while no server ran: one run for all of them, or none. */
export type MissedPolicy = "run" | "skip";
/** What becomes of a time that comes while the run before still goes on: none, or one afterwards. */
export type OverlapPolicy = "skip" | "queue";

export interface CronTrigger {
  type: "cron";
  /** Six fields, seconds first. */
  cron: string;
  timezone: string;
  missed: MissedPolicy;
  overlap: OverlapPolicy;
}
export type WorkflowTrigger = { type: "manual" } | CronTrigger;

export interface WorkflowInfo {
  id: number;
  name: string;
  trigger: WorkflowTrigger;
  steps: readonly WorkflowStep[];
  /** The sandbox it runs in; undefined when each run makes one of its own. */
  sandboxId: string | undefined;
  /** What that one is made from. */
  sandboxConfigJson: string;
  /** False once it was cancelled. */
  active: boolean;
  /** The run that goes on. */
  runId: string | undefined;
  /** Scheduled runs that have failed one after the other. */
  failures: number;
  createdAt: Date;
  updatedAt: Date;
  lastRunAt: Date | undefined;
  nextRunAt: Date | undefined;
}

/** `lost` means that its server died before it ended; `skipped` that its time was passed over. */
export type WorkflowRunState = "running" | "done" | "failed" | "cancelled" | "lost" | "skipped";

/** A command's output is `result`, what it says on standard error is `error`. */
export interface WorkflowStepResult extends TaskResult {
  name: string;
  kind: WorkflowStep["kind"];
  exitCode?: number | undefined;
  /** There was more output than is kept with the run. */
  truncated?: boolean | undefined;
}

export interface WorkflowRunInfo {
  id: string;
  workflowId: number;
  trigger: "manual" | "cron";
  state: WorkflowRunState;
  /** The time it was due. */
  scheduledFor: Date | undefined;
  startedAt: Date;
  endedAt: Date | undefined;
  sandboxId: string | undefined;
  /** Those that have ended, in their order. */
  steps: readonly WorkflowStepResult[];
  /** What all of them come to. */
  task: TaskResult | undefined;
  error: { code: string; message: string } | undefined;
  /** Where the evidence of its sandbox stood at the end; `aido evidence <sandboxId>` reads it. */
  evidence: { entries: number; hash: string } | undefined;
}

export interface WorkflowCreated {
  workflowId: number;
  status: "active";
  nextRunAt: string | null;
  /** What it was made from, for whoever keeps a registry of workflows. */
  config: WorkflowConfig;
}
export interface WorkflowExecution {
  workflowId: number;
  name: string;
  status: "completed" | "failed";
  executedAt: string;
  sandboxConfigJson: string;
  task: TaskResult;
  runId: string;
  sandboxId: string;
  steps: readonly WorkflowStepResult[];
}
export interface WorkflowCanceled {
  workflowId: number;
  status: "canceled";
}
export interface WorkflowTickResult {
  executed: readonly (WorkflowExecution | { workflowId: number; status: "error"; error: string })[];
  count: number;
}
