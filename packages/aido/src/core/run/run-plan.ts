import type { RunRecord, RunSpec, StepRecord } from "@aido/sdk/protocol";
import type { RunRow } from "../store/store.ts";
import { runCommand } from "./run-command.ts";

export interface PlannedTask {
  /** The step's name; undefined for a single task. */
  step: string | undefined;
  task: string;
  argv: readonly string[];
  execId: string;
  timeoutMs: number;
  env: Readonly<Record<string, string>>;
}

/** All of a run that does not change while it runs; made anew from what is written down after a restart. */
export interface RunPlan {
  sandboxId: string;
  spec: RunSpec;
  tasks: readonly PlannedTask[];
  autoDestroy: boolean;
  startedAt: Date;
}

export function toPlan(row: RunRow, spec: RunSpec, record: RunRecord): RunPlan {
  const base = row.execId ?? "run";
  const tasks =
    record.steps === undefined
      ? [{ step: undefined, task: row.task, execId: base, timeoutMs: spec.timeoutMs, env: {} }]
      : spec.steps.map((step, index) => ({
          step: step.name,
          task: step.task,
          execId: `${base}-${index + 1}`,
          timeoutMs: step.timeoutMs || spec.timeoutMs,
          env: step.env,
        }));
  return {
    sandboxId: row.sandboxId,
    spec,
    tasks: tasks.map((task) => ({ ...task, argv: runCommand(spec.runtime, task.task) })),
    autoDestroy: row.autoDestroy,
    startedAt: row.startedAt ?? new Date(0),
  };
}

export function pendingSteps(spec: RunSpec): StepRecord[] {
  return spec.steps.map((step) => ({
    name: step.name,
    task: step.task,
    status: "pending",
    exitCode: null,
    durationMs: null,
  }));
}

/** Names of a step's log files, relative to `outputs/`. */
export function stepLog(index: number, name: string, stream: "stdout" | "stderr"): string {
  return `steps/${index + 1}-${name}.${stream}.log`;
}
