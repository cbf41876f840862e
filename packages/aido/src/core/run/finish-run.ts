import type { RunRecord, RunSummary } from "@aido/sdk/protocol";
import { type Captured, captureOutputs } from "./capture-outputs.ts";
import { missingOutputs } from "./missing-outputs.ts";
import type { RunDeps } from "./run-deps.ts";
import type { RunJournal } from "./run-journal.ts";
import type { RunOutcome } from "./run-outcome.ts";
import type { RunPlan } from "./run-plan.ts";
import { writeJson } from "./write-atomically.ts";

const NOTHING: Captured = { files: [], bytes: 0, contents: [], skipped: [], skippedTotal: 0, renamed: [] };

/**
 * Ends the container unless it is to stay, captures the outputs and writes down how the run ended. Doing it
 * twice gives the same result, so that a process which dies in the middle can be followed by another.
 */
export async function finishRun(
  deps: RunDeps,
  journal: RunJournal,
  plan: RunPlan,
  outcome: RunOutcome,
): Promise<RunSummary> {
  const { sandboxId } = plan;
  // The task has ended, so its outputs are read while the engine takes its container away. What still runs in there may
  // write on until it is killed: reading is safe from that, as it is when the container stays.
  const ending = plan.autoDestroy
    ? deps.lifecycle.finish(sandboxId, outcome.status)
    : deps.lifecycle.tellChanges(sandboxId);
  const [ended, summed] = await Promise.allSettled([ending, sumUp(deps, journal, plan, outcome)]);
  const { captured, record, summary, completedAt } = resultOf(summed);
  resultOf(ended);
  await deps.evidence.append(sandboxId, `run.${outcome.status}`, {
    task: record.task,
    exitCode: outcome.exitCode,
    durationMs: summary.durationMs,
    outputFiles: captured.files.length,
    ...(summary.missingOutputs.length === 0 ? {} : { missingOutputs: summary.missingOutputs }),
    ...(outcome.error === undefined ? {} : { error: outcome.error }),
  });
  await journal.writeRecord({
    ...record,
    status: outcome.status,
    completedAt: summary.completedAt,
    duration: summary.durationMs,
    exitCode: outcome.exitCode,
    ...(outcome.error === undefined ? {} : { error: outcome.error }),
  });
  await journal.close(sandboxId, outcome.status, completedAt);
  return summary;
}

function resultOf<T>(result: PromiseSettledResult<T>): T {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}

async function sumUp(deps: RunDeps, journal: RunJournal, plan: RunPlan, outcome: RunOutcome) {
  const { sandboxId } = plan;
  const captured = await capture(deps, journal, sandboxId);
  const completedAt = deps.clock.now();
  const record = await journal.record(sandboxId);
  const missing = await missingOutputs(plan.spec.outputs, captured.files);
  const summary = toSummary(plan, outcome, { captured, missing, record, completedAt });
  await writeJson(journal.layout(sandboxId).summary, summary, { durable: true });
  return { captured, record, summary, completedAt };
}

async function capture(deps: RunDeps, journal: RunJournal, sandboxId: string): Promise<Captured> {
  const layout = journal.layout(sandboxId);
  try {
    const captured = await captureOutputs(layout.mountedOutputs, layout.outputs, {
      limits: deps.captureLimits,
    });
    const { files, bytes, contents, skipped, skippedTotal, renamed } = captured;
    await deps.evidence.append(sandboxId, "outputs.captured", {
      files: files.length,
      bytes,
      ...(contents.length === 0 ? {} : { contents }),
      ...(skippedTotal === 0 ? {} : { skipped, skippedTotal }),
      ...(renamed.length === 0 ? {} : { renamed }),
    });
    return captured;
  } catch (thrown) {
    // How the task ended is worth more than its files: it is written down whatever becomes of them.
    deps.logger.error({ event: "run.capture", sandboxId, err: thrown }, "outputs could not be captured");
    const reason = String(thrown);
    await deps.evidence.append(sandboxId, "run.error", { error: `outputs could not be captured: ${reason}` });
    return { ...NOTHING, skipped: [{ path: ".", reason }], skippedTotal: 1 };
  }
}

function toSummary(
  plan: RunPlan,
  outcome: RunOutcome,
  about: { captured: Captured; missing: readonly string[]; record: RunRecord; completedAt: Date },
): RunSummary {
  const { captured, missing, record, completedAt } = about;
  return {
    sandboxId: plan.sandboxId,
    status: outcome.status,
    task: record.task,
    exitCode: outcome.exitCode,
    durationMs: Math.max(0, completedAt.getTime() - plan.startedAt.getTime()),
    stdout: "outputs/stdout.log",
    stderr: "outputs/stderr.log",
    outputFiles: captured.files,
    missingOutputs: missing,
    ...(captured.skippedTotal === 0
      ? {}
      : { skippedOutputs: { total: captured.skippedTotal, first: captured.skipped } }),
    startedAt: plan.startedAt.toISOString(),
    completedAt: completedAt.toISOString(),
    ...(record.steps === undefined ? {} : { steps: record.steps }),
    ...(outcome.error === undefined ? {} : { error: outcome.error }),
  };
}
