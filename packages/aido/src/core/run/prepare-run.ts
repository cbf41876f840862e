import type { NewRun, RunOptions, UpRequest } from "@aido/sdk";
import { AidoError, type RunRecord } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../store/store.ts";
import { beginRun, planRun, type RunParts, tellStarting } from "./begin-run.ts";
import { refuseDestroyed } from "./refuse-destroyed.ts";
import { runtimeImage } from "./run-command.ts";
import type { RunDeps } from "./run-deps.ts";
import type { RunJournal } from "./run-journal.ts";
import { IMPLICIT_LABEL, PREPARING, READY, RUN_LABEL, SPEC_LABEL } from "./run-labels.ts";
import { RunLayout } from "./run-layout.ts";
import { pendingSteps } from "./run-plan.ts";
import { storeFiles } from "./store-files.ts";
import { writeAtomically, writeJson } from "./write-atomically.ts";

/** Makes the sandbox of a run: record, directories, inputs, image. What fails half-way is taken away again. */
export async function prepareRun(
  deps: RunDeps,
  journal: RunJournal,
  request: UpRequest,
  options: RunOptions,
): Promise<RunRecord> {
  const sandbox = await reserve(deps, request, options.signal);
  const owner = journal.owner(sandbox.id);
  const record = await orTakeAway(deps, journal, sandbox.id, async () => {
    // Fetched while the files are written; a failure is told where it is awaited.
    const fetched = deps.lifecycle.fetchImage(sandbox.id, options);
    return await meanwhile(fetched, async () => {
      const written = await writeDown(deps, journal, sandbox, request, options);
      await fetched;
      await journal.mark(sandbox.id, { [RUN_LABEL]: READY });
      return written;
    });
  });
  await owner.release();
  return record;
}

/** As `prepareRun`, and its task runs when this resolves: the container starts while everything else is written. */
export async function prepareAndStart(
  deps: RunDeps,
  parts: RunParts,
  request: UpRequest & { start: NewRun },
  options: RunOptions,
): Promise<RunRecord> {
  const { journal } = parts;
  const { spec, start } = request;
  const sandbox = await reserve(deps, request, options.signal);
  const { planned, running } = await orTakeAway(deps, journal, sandbox.id, async () => {
    const launched = deps.lifecycle.launch(sandbox.id, {
      ...options,
      network: start.hostNetwork === true ? "host" : spec.network,
      privileged: start.privileged === true,
    });
    return await meanwhile(launched, async () => {
      await underWay();
      const before = await writeDown(deps, journal, sandbox, request, options);
      const about = { before, spec, request: start, autoDestroy: before.autoDestroy };
      const planned = await planRun(deps, journal, about, options);
      const running = await launched;
      // Not before: what a killed process leaves is taken away until here, and finished as a run from here on.
      await journal.open(planned.row, "pending", { [RUN_LABEL]: READY });
      await tellStarting(deps, planned.row, start);
      return { planned, running };
    });
  });
  return await beginRun(deps, parts, planned, async () => running, options);
}

async function reserve(
  deps: RunDeps,
  request: UpRequest,
  signal: AbortSignal | undefined,
): Promise<SandboxRecord> {
  const { spec } = request;
  checkTasks(request);
  return await deps.lifecycle.prepare(
    {
      profile: "aido",
      image: runtimeImage(spec.runtime),
      isolation: request.isolation,
      env: spec.env,
      network: spec.network,
      permissions: spec.permissions,
      limits: spec.limits,
      ttlMs: isPassing(request) ? spec.ttlMs : 0,
      labels: {
        ...request.labels,
        [RUN_LABEL]: PREPARING,
        [SPEC_LABEL]: spec.name,
        [IMPLICIT_LABEL]: request.implicit === true ? "yes" : "no",
      },
    },
    { mounts: (id) => new RunLayout(deps.dataDir, id).mounts, signal },
  );
}

/** The work owns the sandbox, also after it has succeeded; a sandbox that it fails for is gone. */
async function orTakeAway<T>(
  deps: RunDeps,
  journal: RunJournal,
  sandboxId: string,
  work: () => Promise<T>,
): Promise<T> {
  const owner = journal.owner(sandboxId);
  const over = new AbortController();
  let beating: Promise<void> | undefined;
  try {
    await owner.take();
    beating = owner.beat(over.signal);
    journal.layout(sandboxId).make();
    return await work();
  } catch (thrown) {
    await refuseDestroyed(deps, sandboxId);
    await deps.evidence.append(sandboxId, "run.error", {
      error: thrown instanceof Error ? thrown.message : String(thrown),
    });
    await deps.sandboxes.destroy(sandboxId);
    await owner.release();
    throw thrown;
  } finally {
    over.abort();
    await beating;
  }
}

/** Until what was begun waits for others: its first request leaves with the next turns of the loop. */
async function underWay(): Promise<void> {
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** Does not fail before what goes on beside it has ended, too: nothing is made any more when it is told. */
async function meanwhile<T>(beside: Promise<unknown>, work: () => Promise<T>): Promise<T> {
  beside.catch(() => undefined);
  try {
    return await work();
  } catch (thrown) {
    await beside.catch(() => undefined);
    throw thrown;
  }
}

async function writeDown(
  deps: RunDeps,
  journal: RunJournal,
  sandbox: SandboxRecord,
  request: UpRequest,
  options: RunOptions,
): Promise<RunRecord> {
  const { spec } = request;
  const layout = journal.layout(sandbox.id);
  await writeAtomically(layout.specText, request.specText);
  // The sandbox's record has the variables, which may be secrets; they are kept in one place only.
  await writeJson(layout.spec, { ...spec, env: {} }, { mode: 0o600 });
  await storeFiles(layout.inputs, request.inputs, options.signal);
  await storeFiles(layout.tasks, request.tasks ?? [], options.signal);
  const record: RunRecord = {
    id: sandbox.id,
    sandbox: spec.name,
    status: "pending",
    task: "",
    startedAt: null,
    completedAt: null,
    duration: null,
    exitCode: null,
    container: { id: null, image: sandbox.image },
    autoDestroy: isPassing(request),
    ...(spec.steps.length === 0 ? {} : { steps: pendingSteps(spec) }),
  };
  await journal.writeRecord(record);
  await deps.store.runs.put({
    sandboxId: sandbox.id,
    status: "pending",
    task: "",
    execId: undefined,
    autoDestroy: record.autoDestroy,
    startedAt: undefined,
    completedAt: undefined,
  });
  return record;
}

const isPassing = (request: UpRequest): boolean => request.autoDestroy ?? true;

function checkTasks({ spec, tasks }: UpRequest): void {
  const sent = new Set((tasks ?? []).map((task) => task.path));
  const missing = spec.steps.find((step) => !sent.has(step.task));
  if (missing === undefined) return;
  throw new AidoError("TASK_NOT_FOUND", `The task ${missing.task} of step ${missing.name} was not sent`, {
    details: { step: missing.name, task: missing.task },
  });
}
