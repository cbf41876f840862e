export const RUN_STATUSES = ["pending", "running", "completed", "failed", "timeout"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

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
  container: { id: string | null; image: string };
  autoDestroy: boolean;
  /** One entry per step of a pipeline; absent for a single task. */
  steps?: readonly StepRecord[];
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
  exitCode: number | null;
  durationMs: number;
  stdout: string;
  stderr: string;
  outputFiles: readonly string[];
  /** Declared outputs that the task did not write. */
  missingOutputs: readonly string[];
  startedAt: string;
  completedAt: string;
  steps?: readonly StepRecord[];
}
