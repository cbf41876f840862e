import type { RunOptions, StartRun } from "@aido/sdk";
import { AidoError, type RunRecord, toAidoError } from "@aido/sdk/protocol";
import type { RunRow, SandboxRecord } from "../store/store.ts";
import type { ActiveRuns } from "./active-runs.ts";
import { finishRun } from "./finish-run.ts";
import type { RunDeps } from "./run-deps.ts";
import { RunExecutor } from "./run-executor.ts";
import type { RunJournal } from "./run-journal.ts";
import type { RunLayout } from "./run-layout.ts";
import { RunOutputFiles } from "./run-output-files.ts";
import { pendingSteps, type RunPlan, toPlan } from "./run-plan.ts";
import { storeFiles } from "./store-files.ts";

/**
 * Starts a task, or the steps, in a prepared sandbox. The run is written down before its first effect, so that
 * whatever happens to this process, the next one finds it.
 */
export async function startRun(
  deps: RunDeps,
  parts: { journal: RunJournal; active: ActiveRuns },
  sandboxId: string,
  request: StartRun,
  options: RunOptions,
): Promise<RunRecord> {
  const { journal, active } = parts;
  const owner = journal.owner(sandboxId);
  if (active.done(sandboxId) !== undefined || !(await owner.take())) throw busy(sandboxId);
  let plan: RunPlan;
  try {
    plan = await open(deps, journal, sandboxId, request, options);
  } catch (thrown) {
    await owner.release();
    throw thrown;
  }
  const executor = new RunExecutor(deps, journal, plan);
  try {
    const sandbox = await launch(deps, { plan, layout: journal.layout(sandboxId) }, request, options);
    const record = await journal.record(sandboxId);
    await journal.writeRecord({
      ...record,
      container: { id: sandbox.containerId ?? null, image: sandbox.image },
    });
    const { signal } = options;
    const starting = signal === undefined ? active.closing : AbortSignal.any([active.closing, signal]);
    await executor.start(0, active.closing, starting);
  } catch (thrown) {
    const error = toAidoError(thrown).message;
    await deps.evidence.append(sandboxId, "run.error", { error });
    await executor.skipFrom(1);
    await finishRun(deps, journal, plan, { status: "failed", exitCode: null, error });
    await owner.release();
    throw thrown;
  }
  active.add(plan, executor, (closing) => executor.complete(0, closing));
  return await journal.record(sandboxId);
}

async function open(
  deps: RunDeps,
  journal: RunJournal,
  sandboxId: string,
  request: StartRun,
  options: RunOptions,
): Promise<RunPlan> {
  const row = await journal.row(sandboxId);
  if (row === undefined || row.status === "running") throw busy(sandboxId);
  const spec = await journal.spec(sandboxId);
  const { task } = request;
  if (task === undefined && spec.steps.length === 0) throw noTask(sandboxId);
  const layout = journal.layout(sandboxId);
  if (task !== undefined) {
    if (task.path.includes("/")) throw badTask(task.path);
    await storeFiles(layout.tasks, [task], options.signal);
  }
  const autoDestroy = request.autoDestroy ?? row.autoDestroy;
  const next: RunRow = {
    sandboxId,
    status: "running",
    task: task?.path ?? spec.steps.map((step) => step.name).join(", "),
    execId: `run-${deps.newId()}`,
    autoDestroy,
    startedAt: deps.clock.now(),
    completedAt: undefined,
  };
  const { steps: _, error: __, ...before } = await journal.record(sandboxId);
  const record: RunRecord = {
    ...before,
    status: "running",
    task: next.task,
    startedAt: next.startedAt?.toISOString() ?? null,
    completedAt: null,
    duration: null,
    exitCode: null,
    autoDestroy,
    ...(task === undefined ? { steps: pendingSteps(spec) } : {}),
  };
  const plan = toPlan(next, spec, record);
  await new RunOutputFiles(deps, layout, plan).clear();
  await journal.writeRecord(record);
  if (!(await journal.open(next, row.status))) throw busy(sandboxId);
  await deps.evidence.append(sandboxId, "run.starting", {
    task: next.task,
    autoDestroy,
    ...(request.hostNetwork === true ? { hostNetwork: true } : {}),
    ...(request.privileged === true ? { privileged: true } : {}),
  });
  return plan;
}

/** A sandbox that was kept running is used again as it is. */
async function launch(
  deps: RunDeps,
  { plan, layout }: { plan: RunPlan; layout: RunLayout },
  request: StartRun,
  options: RunOptions,
): Promise<SandboxRecord> {
  const { sandboxId, autoDestroy, spec } = plan;
  const ttlMs = autoDestroy ? spec.ttlMs : 0;
  await deps.sandboxes.get(sandboxId);
  const sandbox = await deps.resolver.resolve(sandboxId);
  if (sandbox.state === "running") {
    if (request.hostNetwork === true || request.privileged === true) throw kept(sandboxId);
    await deps.sandboxes.setTtl(sandboxId, ttlMs);
    return sandbox;
  }
  await layout.emptyOutputs();
  await deps.store.sandboxes.update(sandboxId, { ttlMs });
  return await deps.lifecycle.launch(sandboxId, {
    signal: options.signal,
    onProgress: options.onProgress,
    // Said each time: what one run was allowed must not stay allowed for the next.
    network: request.hostNetwork === true ? "host" : spec.network,
    privileged: request.privileged === true,
  });
}

function busy(sandboxId: string): AidoError {
  return new AidoError("EXECUTION_CONFLICT", `Sandbox ${sandboxId} is running a task already`, {
    hint: `\`aido logs --sandbox ${sandboxId} --follow\` shows it; \`aido sandbox up\` makes another sandbox.`,
    details: { sandboxId },
  });
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

function kept(sandboxId: string): AidoError {
  return new AidoError(
    "EXECUTION_CONFLICT",
    `Sandbox ${sandboxId} runs already and its isolation cannot change`,
    {
      hint: `Stop it with \`aido stop ${sandboxId}\` first, or make another one.`,
      details: { sandboxId },
    },
  );
}
