import { toAidoError } from "@aido/sdk/protocol";
import { isActive, type SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps } from "./swarm-deps.ts";

export interface CleanedUp {
  readonly removed: readonly string[];
  /** What is in the way; the entry stays, so that it can be tried again. */
  readonly failed: readonly { readonly worker: string; readonly error: string }[];
}

/** Removes the containers, records and entries of workers that have ended. */
export async function cleanUpSwarm(
  deps: Pick<SwarmDeps, "workers" | "state" | "records" | "clock">,
  isChosen: (entry: SwarmContainer) => boolean = (entry) => !isActive(entry),
): Promise<CleanedUp> {
  const { workers, state, records, clock } = deps;
  const chosen = (await state.read()).containers.filter(isChosen);
  const removed: string[] = [];
  const failed: { worker: string; error: string }[] = [];
  for (const { containerName: worker } of chosen) {
    try {
      await workers.remove(worker);
      await records.remove(worker);
      removed.push(worker);
    } catch (thrown) {
      failed.push({ worker, error: toAidoError(thrown).message });
    }
  }
  if (removed.length === 0) return { removed, failed };
  await state.update((before) => {
    const containers = before.containers.filter(({ containerName }) => !removed.includes(containerName));
    return { ...before, updatedAt: clock.now().toISOString(), containers };
  });
  return { removed, failed };
}
