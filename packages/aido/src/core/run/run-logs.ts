import type { RunOutput, RunPosition } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { RunDeps } from "./run-deps.ts";
import type { RunJournal } from "./run-journal.ts";
import { type PlannedTask, toPlan } from "./run-plan.ts";

const WATCH_MS = 100;

interface LogRequest {
  sandboxId: string;
  follow: boolean;
  from: RunPosition | undefined;
  signal: AbortSignal | undefined;
}

/** The output of a run's tasks in their order, each byte once; with `follow` until the run has ended. */
export async function* readRunLogs(
  deps: RunDeps,
  journal: RunJournal,
  request: LogRequest,
): AsyncIterable<RunOutput> {
  const { sandboxId, follow, from, signal } = request;
  const tasks = await startedTasks(deps, journal, request);
  const first = from === undefined ? 0 : tasks.findIndex((task) => task.step === from.step);
  if (first < 0) throw noStep(sandboxId, from?.step);
  for (const [index, task] of tasks.slice(first).entries()) {
    if (!(await hasStarted(deps, journal, request, task))) return;
    const range = { ...(index === 0 ? from : {}), follow };
    for await (const chunk of deps.execs.output(sandboxId, task.execId, range, signal)) {
      yield task.step === undefined ? chunk : { ...chunk, step: task.step };
    }
  }
}

/** Empty for a sandbox that has not run anything; with `follow` that is waited for. */
async function startedTasks(
  deps: RunDeps,
  journal: RunJournal,
  { sandboxId, follow, signal }: LogRequest,
): Promise<readonly PlannedTask[]> {
  for (;;) {
    signal?.throwIfAborted();
    const row = await journal.row(sandboxId);
    if (row === undefined) return [];
    if (row.status !== "pending") {
      return toPlan(row, await journal.spec(sandboxId), await journal.record(sandboxId)).tasks;
    }
    if (!follow) return [];
    await deps.clock.sleep(WATCH_MS, signal);
  }
}

async function hasStarted(
  deps: RunDeps,
  journal: RunJournal,
  { sandboxId, follow, signal }: LogRequest,
  task: PlannedTask,
): Promise<boolean> {
  for (;;) {
    signal?.throwIfAborted();
    // Read before the exec is looked for: what starts in between is then still found in the next round.
    const row = await journal.row(sandboxId);
    try {
      await deps.execs.get(sandboxId, task.execId);
      return true;
    } catch (thrown) {
      if (!isAidoError(thrown, "EXECUTION_NOT_FOUND")) throw thrown;
    }
    if (!follow || row?.status !== "running") return false;
    await deps.clock.sleep(WATCH_MS, signal);
  }
}

function noStep(sandboxId: string, step: string | undefined): AidoError {
  const what = step === undefined ? "is a pipeline" : `has no step ${step}`;
  return new AidoError("VALIDATION_ERROR", `The run of ${sandboxId} ${what}`, {
    hint: "Read its output from the beginning.",
    details: { sandboxId, step },
  });
}
