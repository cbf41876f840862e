import type { RunOptions, UpRequest } from "@aido/sdk";
import { AidoError, type RunRecord } from "@aido/sdk/protocol";
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
  const { spec } = request;
  const autoDestroy = request.autoDestroy ?? true;
  checkTasks(request);
  const sandbox = await deps.lifecycle.prepare(
    {
      profile: "aido",
      image: runtimeImage(spec.runtime),
      isolation: request.isolation,
      env: spec.env,
      network: spec.network,
      permissions: spec.permissions,
      limits: spec.limits,
      ttlMs: autoDestroy ? spec.ttlMs : 0,
      labels: {
        ...request.labels,
        [RUN_LABEL]: PREPARING,
        [SPEC_LABEL]: spec.name,
        [IMPLICIT_LABEL]: request.implicit === true ? "yes" : "no",
      },
    },
    { mounts: (id) => new RunLayout(deps.dataDir, id).mounts },
  );
  const owner = journal.owner(sandbox.id);
  const over = new AbortController();
  let beating: Promise<void> | undefined;
  let begun: Promise<unknown> | undefined;
  try {
    await owner.take();
    beating = owner.beat(over.signal);
    const layout = journal.layout(sandbox.id);
    layout.make();
    // The engine works while the files are written; a failure is told where it is awaited.
    const container =
      request.launch === true
        ? deps.lifecycle.launch(sandbox.id, options)
        : deps.lifecycle.fetchImage(sandbox.id, options);
    container.catch(() => undefined);
    begun = container;
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
      autoDestroy,
      ...(spec.steps.length === 0 ? {} : { steps: pendingSteps(spec) }),
    };
    await journal.writeRecord(record);
    await deps.store.runs.put({
      sandboxId: sandbox.id,
      status: "pending",
      task: "",
      execId: undefined,
      autoDestroy,
      startedAt: undefined,
      completedAt: undefined,
    });
    await container;
    await journal.mark(sandbox.id, { [RUN_LABEL]: READY });
    return record;
  } catch (thrown) {
    await begun?.catch(() => undefined);
    await deps.evidence.append(sandbox.id, "run.error", {
      error: thrown instanceof Error ? thrown.message : String(thrown),
    });
    await deps.sandboxes.destroy(sandbox.id);
    throw thrown;
  } finally {
    over.abort();
    await beating;
    await owner.release();
  }
}

function checkTasks({ spec, tasks }: UpRequest): void {
  const sent = new Set((tasks ?? []).map((task) => task.path));
  const missing = spec.steps.find((step) => !sent.has(step.task));
  if (missing === undefined) return;
  throw new AidoError("TASK_NOT_FOUND", `The task ${missing.task} of step ${missing.name} was not sent`, {
    details: { step: missing.name, task: missing.task },
  });
}
