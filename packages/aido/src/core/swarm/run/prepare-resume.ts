import { beginAnew, countStories, newRecord, type WorkerPlan } from "../records/worker-record.ts";
import { findContainer, updateContainer } from "../state/change-state.ts";
import { isActive, NO_CONTAINER, type SwarmContainer, type SwarmState } from "../state/swarm-state.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { catchUp } from "./catch-up.ts";
import { reconcile } from "./reconcile.ts";
import type { SwarmDeps } from "./swarm-deps.ts";

const READ_LIMIT_MS = 30_000;

export interface Resumption {
  /** Only these of the workers that failed or were stopped; none is all. */
  readonly named: readonly string[];
  /** How a worker is to be run from now on; `before` is how it was. */
  readonly planFor: (before: WorkerPlan | undefined) => WorkerPlan;
  readonly readTask: (path: string) => Promise<TaskFile | undefined>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes the state true, and ready to be driven: what failed or was stopped is pending again without a container, what ended unseen
 * says so. Done again after a crash at any point, it comes to the same.
 */
export async function prepareResume(deps: SwarmDeps, resumption: Resumption): Promise<SwarmState> {
  const { state: file, workers, clock } = deps;
  const { named, signal } = resumption;
  const before = await file.read();
  for (const name of named) findContainer(before, name);
  await file.update((state) => reconcile(state, { workers, now: clock.now(), signal }));
  const after = await file.read();
  for (const entry of before.containers.filter(isActive)) {
    const now = after.containers.find(({ containerName }) => containerName === entry.containerName);
    if (now?.status === "completed" || now?.status === "failed")
      await readRest(deps, before.swarmId, now, resumption);
  }
  for (const entry of (await file.read()).containers) {
    const isChosen = named.length === 0 || named.includes(entry.containerName) || isActive(entry);
    if (isChosen && entry.status !== "completed") await makeReady(deps, before.swarmId, entry, resumption);
  }
  return await file.read();
}

/** It ended while nobody looked: what it said last is still to be read. */
async function readRest(
  deps: SwarmDeps,
  swarmId: string,
  entry: SwarmContainer,
  { planFor, readTask, signal }: Resumption,
): Promise<void> {
  const { exists } = await deps.workers.status(entry.containerName, signal);
  if (!exists) return;
  const file = await readTask(entry.taskFilePath);
  await catchUp(deps, { swarmId, entry, plan: planFor(undefined), file, limitMs: READ_LIMIT_MS, signal });
}

async function makeReady(
  { records, workers, state, clock }: SwarmDeps,
  swarmId: string,
  entry: SwarmContainer,
  { planFor, readTask, signal }: Resumption,
): Promise<void> {
  const name = entry.containerName;
  const known = await records.read(swarmId, name);
  const plan = planFor(known?.plan);
  const record = known === undefined ? newRecord(swarmId, name, plan) : { ...known, plan };
  if (isActive(entry)) {
    // A lost record stays lost: from where to read on is not to be guessed.
    if (known !== undefined || entry.containerId === NO_CONTAINER) await records.write(record);
    return;
  }
  const { exists, swarmState } = await workers.status(name, signal);
  if (entry.status === "stopped" && exists && swarmState === "running") {
    // It was only paused.
    await state.update((before) => updateContainer(before, name, { status: "running" }, clock.now()));
    return;
  }
  await workers.remove(name);
  // In this order: a record that has begun anew belongs to no container, which harms nothing when the entry still has one.
  await records.write(beginAnew(record));
  const file = await readTask(entry.taskFilePath);
  await state.update((before) =>
    updateContainer(
      before,
      name,
      {
        status: "pending",
        containerId: NO_CONTAINER,
        prUrl: null,
        acpPid: null,
        ...(file === undefined
          ? {}
          : { storyProgress: countStories(file.stories.map(({ status }) => status)) }),
      },
      clock.now(),
    ),
  );
}
