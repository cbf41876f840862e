import { AidoError } from "@aido/sdk/protocol";
import { catchUp } from "../follow/catch-up.ts";
import {
  beginAnew,
  countStories,
  isAllAtOrigin,
  newRecord,
  type WorkerPlan,
} from "../records/worker-record.ts";
import { findContainer, updateContainer } from "../state/change-state.ts";
import { isActive, NO_CONTAINER, type SwarmContainer, type SwarmState } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { reconcile } from "./reconcile.ts";

const READ_LIMIT_MS = 30_000;

export interface Resumption {
  /** Only these of the workers that failed or were stopped; none is all. */
  readonly named: readonly string[];
  /** How a worker is to be run from now on; `before` is how it was. */
  readonly planFor: (before: WorkerPlan | undefined) => WorkerPlan;
  /** The repository brings the records along: none is believed, and workers are given new containers. */
  readonly isCarried?: boolean | undefined;
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
  // First: what a worker said last goes into its entry with its end, so that a process killed in between loses none of it.
  for (const entry of before.containers)
    if (entry.status !== "completed" && entry.containerId !== NO_CONTAINER)
      await readRest(deps, before.swarmId, entry, resumption);
  await file.update((state) => reconcile(state, { workers, now: clock.now(), signal }));
  for (const entry of (await file.read()).containers) {
    const isChosen = named.length === 0 || named.includes(entry.containerName) || isActive(entry);
    if (isChosen && entry.status !== "completed") await makeReady(deps, before.swarmId, entry, resumption);
  }
  return await file.read();
}

/** Of one that ended while nobody looked: what it said last is still to be read. */
async function readRest(
  deps: SwarmDeps,
  swarmId: string,
  entry: SwarmContainer,
  { planFor, readTask, signal }: Resumption,
): Promise<void> {
  const { containerName: name } = entry;
  if (!isActive(entry) && (await deps.records.read(swarmId, name))?.last !== undefined) return;
  const { swarmState } = await deps.workers.status(name, signal);
  if (swarmState !== "completed" && swarmState !== "failed") return;
  const file = await readTask(entry.taskFilePath);
  await catchUp(deps, { swarmId, entry, plan: planFor(undefined), file, limitMs: READ_LIMIT_MS, signal });
}

async function makeReady(
  { records, workers, state, clock }: SwarmDeps,
  swarmId: string,
  entry: SwarmContainer,
  { planFor, isCarried = false, readTask, signal }: Resumption,
): Promise<void> {
  const name = entry.containerName;
  const known = await records.read(swarmId, name);
  const plan = planFor(known?.plan);
  const wasKept = !isCarried && known?.isKept;
  const record = known === undefined ? newRecord(swarmId, name, plan) : { ...known, plan, isKept: wasKept };
  if (isActive(entry)) {
    if (wasKept) refuseOther(name, known.plan, plan);
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
  const isKept = !isCarried && exists && (known === undefined || !isAllAtOrigin(known));
  if (isKept) refuseOther(name, known?.plan ?? plan, plan);
  else await workers.remove(name);
  // In this order: a record that has begun anew belongs to no container, which harms nothing when the entry still has one.
  await records.write({ ...beginAnew(record), ...(isKept ? { isKept } : {}) });
  const file = await readTask(entry.taskFilePath);
  const changes = {
    status: "pending",
    containerId: NO_CONTAINER,
    prUrl: null,
    acpPid: null,
    ...(file === undefined ? {} : { storyProgress: countStories(file.stories.map(({ status }) => status)) }),
  } as const;
  await state.update((before) =>
    // Somebody may have cleaned it up meanwhile.
    before.containers.some(({ containerName }) => containerName === name)
      ? updateContainer(before, name, changes, clock.now())
      : before,
  );
}

/** Its work is in a container that was made as it was made. */
function refuseOther(name: string, before: WorkerPlan, now: WorkerPlan): void {
  if (before.image === now.image && before.isolation === now.isolation) return;
  throw new AidoError(
    "VALIDATION_ERROR",
    `${name} goes on in its container, which may have work that origin has not: its image and isolation stay`,
    {
      hint: `Leave --image and --isolation away, or give that work up with \`aido sandbox-manager remove ${name}\`.`,
      details: { worker: name },
    },
  );
}
