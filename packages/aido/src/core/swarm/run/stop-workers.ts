import { toAidoError } from "@aido/sdk/protocol";
import { findContainer, updateContainer } from "../state/change-state.ts";
import { isActive, NO_CONTAINER, type SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";

export interface StoppedWorker {
  readonly worker: string;
  /** Undefined when it was stopped. */
  readonly error?: string | undefined;
}

/**
 * Stops these workers, or all. Those that wait never begin; those that run are asked to put their work away. Whether or not another
 * process drives the swarm: it sees them end.
 */
export async function stopWorkers(
  deps: Pick<SwarmDeps, "workers" | "state" | "clock">,
  { named, graceMs }: { named: readonly string[]; graceMs: number },
): Promise<readonly StoppedWorker[]> {
  const { state, workers, clock } = deps;
  const before = await state.read();
  const chosen = named.length === 0 ? before.containers : named.map((name) => findContainer(before, name));
  const active = chosen.filter(isActive);
  const markStopped = async (
    entries: readonly SwarmContainer[],
    isStill: (entry: SwarmContainer) => boolean,
  ) => {
    await state.update((now) =>
      entries.reduce((state, { containerName: name }) => {
        const entry = state.containers.find((each) => each.containerName === name);
        if (entry === undefined || !isStill(entry)) return state;
        return updateContainer(state, name, { status: "stopped", acpPid: null }, clock.now());
      }, now),
    );
  };
  await markStopped(active, (entry) => entry.status === "pending" && entry.containerId === NO_CONTAINER);
  const ends = await Promise.all(
    active.map(async (entry): Promise<StoppedWorker> => {
      const worker = entry.containerName;
      try {
        await workers.stop(worker, graceMs);
        return { worker };
      } catch (thrown) {
        return { worker, error: toAidoError(thrown).message };
      }
    }),
  );
  const stopped = new Set(ends.filter(({ error }) => error === undefined).map(({ worker }) => worker));
  // One that completed meanwhile has completed.
  await markStopped(
    active.filter(({ containerName }) => stopped.has(containerName)),
    (entry) => entry.status !== "completed",
  );
  return ends;
}
