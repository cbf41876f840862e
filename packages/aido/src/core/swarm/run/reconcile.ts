import { updateContainer } from "../state/change-state.ts";
import type { SwarmContainer, SwarmState, WorkerStatus } from "../state/swarm-state.ts";
import { isActive, NO_CONTAINER } from "../state/swarm-state.ts";
import type { WorkerInfo, Workers } from "../workers/workers.ts";

/**
 * The state as the engine knows it: the same object when nothing differs. An engine that does not answer says nothing about
 * any worker, so that is an error.
 */
export async function reconcile(
  state: SwarmState,
  { workers, now, signal }: { workers: Pick<Workers, "status">; now: Date; signal?: AbortSignal | undefined },
): Promise<SwarmState> {
  const found = await Promise.all(
    state.containers
      .filter((entry) => isActive(entry) && entry.containerId !== NO_CONTAINER)
      .map(async (entry) => ({ entry, info: await workers.status(entry.containerName, signal) })),
  );
  return found.reduce((before, { entry, info }) => {
    const status = detect(entry, info);
    if (status === entry.status) return before;
    const ended = status === "running" ? {} : { acpPid: null };
    return updateContainer(before, entry.containerName, { status, ...ended }, now);
  }, state);
}

/** What an entry that is pending or running should say. */
export function detect(entry: SwarmContainer, info: WorkerInfo): WorkerStatus {
  if (!info.exists || !isSame(entry, info)) return "failed";
  switch (info.swarmState) {
    case "completed":
    case "failed":
      return info.swarmState;
    case "running":
      return "running";
    case "stopped":
      return entry.status === "running" ? "stopped" : entry.status;
    case "pending":
      return entry.status;
    case "not_found":
      return "failed";
  }
}

/** Other tools write short ids. */
function isSame({ containerId }: SwarmContainer, info: WorkerInfo): boolean {
  return (
    info.containerId === undefined ||
    info.containerId.startsWith(containerId) ||
    containerId.startsWith(info.containerId)
  );
}
