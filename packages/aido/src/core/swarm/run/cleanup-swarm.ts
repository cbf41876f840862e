import { toAidoError } from "@aido/sdk/protocol";
import { removeContainer } from "../state/change-state.ts";
import { isActive, type SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";

export interface CleanedUp {
  readonly removed: readonly string[];
  /** What is in the way; the entry stays, so that it can be tried again. */
  readonly failed: readonly { readonly worker: string; readonly error: string }[];
}

/**
 * Removes the containers, records and entries of workers that have ended. Each with the state's lock held: one that another process
 * begins anew meanwhile is left alone.
 */
export async function cleanUpSwarm(
  deps: Pick<SwarmDeps, "workers" | "state" | "records" | "clock">,
  isChosen: (entry: SwarmContainer) => boolean = (entry) => !isActive(entry),
): Promise<CleanedUp> {
  const chosen = (await deps.state.read()).containers.filter(isChosen);
  const removed: string[] = [];
  const failed: { worker: string; error: string }[] = [];
  for (const entry of chosen) {
    const { containerName: worker } = entry;
    try {
      if (await removeWorker(deps, entry, isChosen)) removed.push(worker);
    } catch (thrown) {
      failed.push({ worker, error: toAidoError(thrown).message });
    }
  }
  return { removed, failed };
}

async function removeWorker(
  { workers, state, records, clock }: Pick<SwarmDeps, "workers" | "state" | "records" | "clock">,
  { containerName, containerId }: SwarmContainer,
  isChosen: (entry: SwarmContainer) => boolean,
): Promise<boolean> {
  let isRemoved = false;
  await state.update(async (before) => {
    const now = before.containers.find((each) => each.containerName === containerName);
    if (now === undefined || now.containerId !== containerId || !isChosen(now)) return before;
    await workers.remove(containerName);
    await records.remove(containerName);
    isRemoved = true;
    return removeContainer(before, containerName, clock.now());
  });
  return isRemoved;
}
