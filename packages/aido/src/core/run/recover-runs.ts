import type { EndReason, RunRecord, SandboxInfo } from "@aido/sdk/protocol";
import type { RunRow, SandboxRecord } from "../store/store.ts";
import { type CurrentTask, findCurrentTask } from "./current-task.ts";
import { finishRun } from "./finish-run.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunExecutor } from "./run-executor.ts";
import type { RunJournal } from "./run-journal.ts";
import { type RunOutcome, toOutcome } from "./run-outcome.ts";
import { RunOutputFiles } from "./run-output-files.ts";
import { type RunPlan, toPlan } from "./run-plan.ts";

const UNOWNED_MS = 60_000;

/**
 * Finishes a run whose process is gone, by what is true now: the exec's own end, or how the sandbox ended. A run
 * that still goes on is left alone.
 */
export async function recoverRun(deps: RunDeps, journal: RunJournal, sandboxId: string): Promise<void> {
  if (!(await journal.isOurs(sandboxId))) return;
  const owner = journal.owner(sandboxId);
  if ((await owner.holder()) !== undefined || !(await owner.take())) return;
  try {
    const known = await journal.row(sandboxId);
    if (known === undefined) return;
    const record = await journal.record(sandboxId);
    const row = known.status === "running" ? known : await openBegun(deps, journal, known, record);
    if (row === undefined) {
      return await journal.close(sandboxId, known.status, known.completedAt ?? deps.clock.now());
    }
    const plan = toPlan(row, await journal.spec(sandboxId), record);
    // Asked first: it makes the record agree with what has become of the container.
    const sandbox = await deps.sandboxes.get(sandboxId);
    const current = await findCurrentTask(deps, plan, record);
    if (current.exec?.status === "running" && sandbox.state === "running") return;
    const outcome = toTaskOutcome(current, await endOf(deps, sandbox));
    await new RunOutputFiles(deps, journal.layout(sandboxId), plan).rebuild(plan.tasks.length);
    await writeSteps(deps, journal, plan, { record, current, outcome });
    await deps.evidence.append(sandboxId, "run.recovered", { status: outcome.status });
    await finishRun(deps, journal, plan, overall(plan, current, outcome));
  } finally {
    await owner.release();
  }
}

/** A run that was written down and no more: what the one before had left is going already, so this one is told. */
async function openBegun(
  deps: RunDeps,
  journal: RunJournal,
  before: RunRow,
  { status, task, startedAt, autoDestroy }: RunRecord,
): Promise<RunRow | undefined> {
  if (status !== "running" || startedAt === null) return undefined;
  const row: RunRow = {
    ...before,
    status: "running",
    task,
    execId: `run-${deps.newId()}`,
    autoDestroy,
    startedAt: new Date(startedAt),
    completedAt: undefined,
  };
  return (await journal.open(row, before.status)) ? row : undefined;
}

/** The sandbox may have ended since it was asked for, and have taken the task with it; at its deadline the task goes first. */
async function endOf(deps: RunDeps, asked: SandboxInfo): Promise<EndReason | undefined> {
  const { state, endReason, expiresAt } =
    asked.state === "running" ? await deps.sandboxes.get(asked.id) : asked;
  if (state !== "running") return endReason;
  return expiresAt !== undefined && expiresAt <= deps.clock.now() ? "timeout" : undefined;
}

/** Takes away what a process that died was making for a run; nobody can use it. */
export async function discardUnprepared(
  deps: RunDeps,
  journal: RunJournal,
  sandbox: SandboxRecord,
): Promise<void> {
  if (!(await journal.isOurs(sandbox.id))) return;
  const owner = journal.owner(sandbox.id);
  if ((await owner.holder()) !== undefined) return;
  // Its owner is written down a moment after its record.
  const isYoung = deps.clock.now().getTime() - sandbox.createdAt.getTime() < UNOWNED_MS;
  if (isYoung && !(await owner.wasTaken())) return;
  if (!(await owner.take())) return;
  await deps.evidence.append(sandbox.id, "run.error", {
    error: "aido was ended before the sandbox was ready",
  });
  await deps.sandboxes.destroy(sandbox.id);
}

function toTaskOutcome(current: CurrentTask, ended: Parameters<typeof toOutcome>[1]): RunOutcome {
  if (current.exec === undefined) {
    return { status: "failed", exitCode: null, error: "aido was ended before the task had started" };
  }
  return toOutcome(current.exec.status === "running" ? undefined : current.exec, ended);
}

async function writeSteps(
  deps: RunDeps,
  journal: RunJournal,
  plan: RunPlan,
  found: { record: RunRecord; current: CurrentTask; outcome: RunOutcome },
): Promise<void> {
  const { record, current, outcome } = found;
  if (record.steps === undefined) return;
  const executor = new RunExecutor(deps, journal, plan);
  if (current.exec === undefined) return await executor.skipFrom(current.index);
  const { status, exitCode } = outcome;
  const durationMs = current.exec.durationMs ?? null;
  const steps = record.steps.map((step, index) =>
    index === current.index ? { ...step, status, exitCode, durationMs } : step,
  );
  await journal.writeRecord({ ...record, steps });
  await executor.skipFrom(current.index + 1);
}

/** Nobody was there to start the steps after the one that ended. */
function overall(plan: RunPlan, current: CurrentTask, outcome: RunOutcome): RunOutcome {
  if (outcome.status !== "completed" || current.index + 1 >= plan.tasks.length) return outcome;
  return {
    status: "failed",
    exitCode: outcome.exitCode,
    error: "aido was ended before the next step could be started",
  };
}
