import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { newRecord, type WorkerPlan } from "../records/worker-record.ts";
import { cleanUpSwarm } from "../run/cleanup-swarm.ts";
import { reconcile } from "../run/reconcile.ts";
import { stopWorkers } from "../run/stop-workers.ts";
import { startSwarm } from "../state/change-state.ts";
import { isActive, type SwarmState } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { workerName } from "../workers/worker-name.ts";
import { checkBranches, type TakenBranches } from "./check-branches.ts";
import { registerWorkers } from "./register-workers.ts";

const STOP_GRACE_MS = 30_000;

export type SwarmMode = "new" | "force" | "append";

/** The state as it is, compared with the engine; undefined when there is no swarm yet. Refuses a swarm that is still at work. */
export async function findSwarm(
  { state, workers, clock }: Pick<SwarmDeps, "state" | "workers" | "clock">,
  mode: SwarmMode,
  signal?: AbortSignal,
): Promise<SwarmState | undefined> {
  let found: SwarmState;
  try {
    found = await state.update((before) => reconcile(before, { workers, now: clock.now(), signal }));
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_NOT_FOUND")) return undefined;
    throw thrown;
  }
  const active = found.containers.filter(isActive).length;
  if (active === 0 || mode !== "new") return found;
  throw new AidoError(
    "SWARM_ACTIVE",
    `There is a swarm with ${active} pending or running worker${active === 1 ? "" : "s"}`,
    {
      hint: "Go on with it: `aido swarm resume`. Add to it: `aido swarm --append`. End it and begin anew: `aido swarm --force`.",
      details: { swarmId: found.swarmId, active },
    },
  );
}

/** Those of the files that are not being worked on already. */
export function newFiles(files: readonly TaskFile[], before: SwarmState | undefined): readonly TaskFile[] {
  const active = new Set(before?.containers.filter(isActive).map(({ taskFilePath }) => taskFilePath));
  return files.filter(({ path }) => !active.has(path));
}

export interface Beginning {
  readonly mode: SwarmMode;
  readonly files: readonly TaskFile[];
  readonly plan: WorkerPlan;
  readonly branches: TakenBranches;
  readonly swarmId: string;
}

/**
 * Writes the swarm down before anything of it runs: a worker for each file, pending. What is left of one before it goes. What
 * others add at the same time is seen, because all of it is looked at with the state's lock held.
 */
export async function beginSwarm(deps: SwarmDeps, beginning: Beginning): Promise<SwarmState> {
  const { state, records, clock } = deps;
  const { mode, files, plan, branches } = beginning;
  // One that has ended and is added again keeps its container until the next one is made.
  if (mode !== "append") await removeBefore(deps, mode);
  return await state.replace(async (before) => {
    const { swarmId } = beginning;
    const base =
      mode === "append" && before !== undefined
        ? before
        : startSwarm(before, { swarmId, now: clock.now(), force: mode === "force" });
    const added = newFiles(files, base);
    checkBranches(added, { ...branches, entries: base.containers });
    // Before the state: a worker that is in it is run as it was asked for.
    for (const { path } of added) await records.write(newRecord(base.swarmId, workerName(path), plan));
    return registerWorkers(base, added, clock.now());
  });
}

async function removeBefore(deps: SwarmDeps, mode: SwarmMode): Promise<void> {
  try {
    // What they have done goes to origin first.
    if (mode === "force") await stopWorkers(deps, { named: [], graceMs: STOP_GRACE_MS });
    const { failed } = await cleanUpSwarm(deps, () => true);
    const [first] = failed;
    if (first === undefined) return;
    throw new AidoError("CONTAINER_REMOVAL_FAILED", `Cannot remove ${first.worker}: ${first.error}`);
  } catch (thrown) {
    if (!isAidoError(thrown, "SWARM_NOT_FOUND")) throw thrown;
  }
}
