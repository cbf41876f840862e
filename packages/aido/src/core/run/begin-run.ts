import type { NewRun, RunOptions } from "@aido/sdk";
import { AidoError, type RunRecord, type RunSpec, toAidoError } from "@aido/sdk/protocol";
import type { RunRow, SandboxRecord } from "../store/store.ts";
import type { ActiveRuns } from "./active-runs.ts";
import { finishRun } from "./finish-run.ts";
import { refuseDestroyed } from "./refuse-destroyed.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunExecutor } from "./run-executor.ts";
import type { RunJournal } from "./run-journal.ts";
import { RunOutputFiles } from "./run-output-files.ts";
import { pendingSteps, type RunPlan, toPlan } from "./run-plan.ts";
import { storeFiles } from "./store-files.ts";

export interface PlannedRun {
  plan: RunPlan;
  row: RunRow;
  record: RunRecord;
}

export interface RunParts {
  journal: RunJournal;
  active: ActiveRuns;
}

/** Puts a run's task and files in their places; nothing is told to anyone yet, and no container is needed. */
export async function planRun(
  deps: RunDeps,
  journal: RunJournal,
  about: { before: RunRecord; spec: RunSpec; request: NewRun; autoDestroy: boolean },
  options: RunOptions,
): Promise<PlannedRun> {
  const { spec, request, autoDestroy } = about;
  const { id: sandboxId } = about.before;
  const { task } = request;
  if (task === undefined && spec.steps.length === 0) throw noTask(sandboxId);
  const layout = journal.layout(sandboxId);
  if (task !== undefined) {
    if (task.path.includes("/")) throw badTask(task.path);
    await storeFiles(layout.tasks, [task], options.signal);
  }
  const row: RunRow = {
    sandboxId,
    status: "running",
    task: task?.path ?? spec.steps.map((step) => step.name).join(", "),
    execId: `run-${deps.newId()}`,
    autoDestroy,
    startedAt: deps.clock.now(),
    completedAt: undefined,
  };
  const { steps: _, error: __, ...before } = about.before;
  const record: RunRecord = {
    ...before,
    status: "running",
    task: row.task,
    startedAt: row.startedAt?.toISOString() ?? null,
    completedAt: null,
    duration: null,
    exitCode: null,
    autoDestroy,
    ...(task === undefined ? { steps: pendingSteps(spec) } : {}),
  };
  const plan = toPlan(row, spec, record);
  // Written before anything of the run before goes: what a full disk does not let begin takes nothing away.
  await journal.writeRecord(record);
  await new RunOutputFiles(deps, layout, plan).clear();
  return { plan, row, record };
}

export async function tellStarting(
  deps: RunDeps,
  { sandboxId, task, autoDestroy }: RunRow,
  request: NewRun,
): Promise<void> {
  await deps.evidence.append(sandboxId, "run.starting", {
    task,
    autoDestroy,
    ...(request.hostNetwork === true ? { hostNetwork: true } : {}),
    ...(request.privileged === true ? { privileged: true } : {}),
  });
}

/** The first task in the container that `launch` gives; from here on this process sees the run to its end. */
export async function beginRun(
  deps: RunDeps,
  { journal, active }: RunParts,
  { plan, record }: PlannedRun,
  launch: () => Promise<SandboxRecord>,
  options: RunOptions,
): Promise<RunRecord> {
  const { sandboxId } = plan;
  const executor = new RunExecutor(deps, journal, plan);
  try {
    const sandbox = await launch();
    const programs = deps.driver.standIn(sandbox.image);
    const container = {
      id: sandbox.containerId ?? null,
      image: sandbox.image,
      ...(programs === undefined ? {} : { programs }),
    };
    await journal.writeRecord({ ...record, container });
    const { signal } = options;
    const starting = signal === undefined ? active.closing : AbortSignal.any([active.closing, signal]);
    await executor.start(0, active.closing, starting);
  } catch (thrown) {
    await refuseDestroyed(deps, sandboxId);
    const error = toAidoError(thrown).message;
    await deps.evidence.append(sandboxId, "run.error", { error });
    await executor.skipFrom(1);
    try {
      await finishRun(deps, journal, plan, { status: "failed", exitCode: null, error });
    } catch (late) {
      // Its container went first, which is what had failed.
      await refuseDestroyed(deps, sandboxId);
      throw late;
    }
    await journal.owner(sandboxId).release();
    throw thrown;
  }
  active.add(plan, executor, (closing) => executor.complete(0, closing));
  return await journal.record(sandboxId);
}

function noTask(sandboxId: string): AidoError {
  return new AidoError("TASK_NOT_FOUND", `No task was named and the spec of ${sandboxId} has no steps`, {
    hint: "Name a task file, for example `aido run task.py`.",
    details: { sandboxId },
  });
}

function badTask(path: string): AidoError {
  return new AidoError("INVALID_PATH", `The task's name ${JSON.stringify(path)} has a slash`, {
    details: { path },
  });
}
