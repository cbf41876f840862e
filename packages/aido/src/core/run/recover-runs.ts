import { type ExecInfo, isAidoError } from "@aido/sdk/protocol";
import { finishRun } from "./finish-run.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunExecutor } from "./run-executor.ts";
import type { RunJournal } from "./run-journal.ts";
import { type RunOutcome, toOutcome } from "./run-outcome.ts";
import { RunOutputFiles } from "./run-output-files.ts";
import { type RunPlan, toPlan } from "./run-plan.ts";

/**
 * Finishes a run whose process is gone, by what is true now: the exec's own end, or how the sandbox ended. A run
 * that still goes on is left alone.
 */
export async function recoverRun(deps: RunDeps, journal: RunJournal, sandboxId: string): Promise<void> {
  const owner = journal.owner(sandboxId);
  if ((await owner.holder()) !== undefined || !(await owner.take())) return;
  try {
    const row = await journal.row(sandboxId);
    if (row === undefined) return;
    if (row.status !== "running")
      return await journal.close(sandboxId, row.status, row.completedAt ?? deps.clock.now());
    const record = await journal.record(sandboxId);
    const plan = toPlan(row, await journal.spec(sandboxId), record);
    const running = record.steps?.findIndex((step) => step.status === "running") ?? 0;
    const outcome = await findOutcome(deps, plan, running);
    if (outcome === undefined) return;
    await new RunOutputFiles(deps, journal.layout(sandboxId), plan).rebuild();
    await writeSteps(deps, journal, plan, { running, outcome });
    await deps.evidence.append(sandboxId, "run.recovered", { status: outcome.status });
    await finishRun(deps, journal, plan, overall(plan, running, outcome));
  } finally {
    await owner.release();
  }
}

/** Undefined while the task still runs. */
async function findOutcome(deps: RunDeps, plan: RunPlan, running: number): Promise<RunOutcome | undefined> {
  const sandbox = await deps.sandboxes.get(plan.sandboxId);
  const task = plan.tasks[running];
  const exec = task === undefined ? undefined : await findExec(deps, plan.sandboxId, task.execId);
  if (exec !== undefined && exec.status !== "running") return toOutcome(exec, sandbox.endReason);
  if (sandbox.state === "running" && exec !== undefined) return undefined;
  if (exec === undefined) {
    return { status: "failed", exitCode: null, error: "aido was ended before the task had started" };
  }
  return toOutcome(undefined, sandbox.endReason);
}

async function findExec(deps: RunDeps, sandboxId: string, execId: string): Promise<ExecInfo | undefined> {
  try {
    return await deps.execs.get(sandboxId, execId);
  } catch (thrown) {
    if (isAidoError(thrown, "EXECUTION_NOT_FOUND")) return undefined;
    throw thrown;
  }
}

async function writeSteps(
  deps: RunDeps,
  journal: RunJournal,
  plan: RunPlan,
  found: { running: number; outcome: RunOutcome },
): Promise<void> {
  const record = await journal.record(plan.sandboxId);
  if (record.steps === undefined) return;
  const { status, exitCode } = found.outcome;
  const steps = record.steps.map((step, index) =>
    index === found.running ? { ...step, status, exitCode } : step,
  );
  await journal.writeRecord({ ...record, steps });
  const done = steps.findIndex((step) => step.status === "pending");
  if (done >= 0) await new RunExecutor(deps, journal, plan).skipFrom(done);
}

/** Nobody was there to start the steps after the one that ended. */
function overall(plan: RunPlan, running: number, outcome: RunOutcome): RunOutcome {
  if (outcome.status !== "completed" || running + 1 >= plan.tasks.length) return outcome;
  return {
    status: "failed",
    exitCode: outcome.exitCode,
    error: "aido was ended before the next step could be started",
  };
}
