import { type ExecInfo, isAidoError, type RunRecord } from "@aido/sdk/protocol";
import type { RunDeps } from "./run-deps.ts";
import type { RunPlan } from "./run-plan.ts";

export interface CurrentTask {
  index: number;
  /** Undefined when it was never started. */
  exec: ExecInfo | undefined;
}

/** How far a run has come, from what is written down and what the supervisor says. */
export async function findCurrentTask(deps: RunDeps, plan: RunPlan, record: RunRecord): Promise<CurrentTask> {
  const open = record.steps?.findIndex((step) => step.status === "running" || step.status === "pending") ?? 0;
  const index = open < 0 ? plan.tasks.length - 1 : open;
  const task = plan.tasks[index];
  return { index, exec: task === undefined ? undefined : await findExec(deps, plan.sandboxId, task.execId) };
}

async function findExec(deps: RunDeps, sandboxId: string, execId: string): Promise<ExecInfo | undefined> {
  try {
    return await deps.execs.get(sandboxId, execId);
  } catch (thrown) {
    if (isAidoError(thrown, "EXECUTION_NOT_FOUND")) return undefined;
    throw thrown;
  }
}
