import type { RunOptions, StartRun } from "@aido/sdk";
import { AidoError, type RunRecord } from "@aido/sdk/protocol";
import { refuseForeign } from "../sandbox/refuse-foreign.ts";
import type { SandboxRecord } from "../store/store.ts";
import { beginRun, type PlannedRun, planRun, type RunParts, tellStarting } from "./begin-run.ts";
import { refuseDestroyed } from "./refuse-destroyed.ts";
import type { RunDeps } from "./run-deps.ts";
import type { RunJournal } from "./run-journal.ts";
import { RUN_ACTIVE } from "./run-labels.ts";
import type { RunPlan } from "./run-plan.ts";

/**
 * Starts a task, or the steps, in a prepared sandbox. The run is written down before its first effect, so that
 * whatever happens to this process, the next one finds it.
 */
export async function startRun(
  deps: RunDeps,
  parts: RunParts,
  sandboxId: string,
  request: StartRun,
  options: RunOptions,
): Promise<RunRecord> {
  const { journal, active } = parts;
  const owner = journal.owner(sandboxId);
  if (active.done(sandboxId) !== undefined || !(await owner.take())) throw busy(sandboxId);
  let planned: PlannedRun;
  try {
    planned = await open(deps, journal, sandboxId, request, options);
  } catch (thrown) {
    await owner.release();
    await refuseDestroyed(deps, sandboxId);
    throw thrown;
  }
  return await beginRun(
    deps,
    parts,
    planned,
    () => launch(deps, parts, planned.plan, request, options),
    options,
  );
}

async function open(
  deps: RunDeps,
  journal: RunJournal,
  sandboxId: string,
  request: StartRun,
  options: RunOptions,
): Promise<PlannedRun> {
  const row = await journal.row(sandboxId);
  if (row === undefined || row.status === "running") throw busy(sandboxId);
  // Before what the last run left is cleared away.
  await refuseUnusable(deps, sandboxId, request);
  const about = {
    before: await journal.record(sandboxId),
    spec: await journal.spec(sandboxId),
    request,
    autoDestroy: request.autoDestroy ?? row.autoDestroy,
  };
  // Before its record says that it runs: a process that dies in between leaves it for recovery to find.
  await journal.mark(sandboxId, RUN_ACTIVE);
  const planned = await planRun(deps, journal, about, options);
  if (!(await journal.open(planned.row, row.status))) throw busy(sandboxId);
  await tellStarting(deps, planned.row, request);
  return planned;
}

/** A run that cannot be leaves the results of the one before as they are. */
async function refuseUnusable(deps: RunDeps, sandboxId: string, request: StartRun): Promise<void> {
  refuseForeign(await deps.resolver.resolve(sandboxId), deps.driver.name);
  const { state } = await deps.sandboxes.get(sandboxId);
  // It may be out of reach.
  await deps.driver.capabilities();
  const isOtherwise = request.hostNetwork === true || request.privileged === true;
  if (state === "running" && isOtherwise) throw kept(sandboxId);
}

/** A sandbox that was kept running is used again as it is. */
async function launch(
  deps: RunDeps,
  { journal }: RunParts,
  { sandboxId, autoDestroy, spec }: RunPlan,
  request: StartRun,
  options: RunOptions,
): Promise<SandboxRecord> {
  const ttlMs = autoDestroy ? spec.ttlMs : 0;
  const sandbox = await deps.resolver.resolve(sandboxId);
  if (sandbox.state === "running") {
    await deps.sandboxes.setTtl(sandboxId, ttlMs);
    return sandbox;
  }
  await journal.layout(sandboxId).emptyOutputs();
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
