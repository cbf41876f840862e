import type { WorkerRecord } from "../records/worker-record.ts";
import type { SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps, WorkerSurroundings } from "../swarm-deps.ts";

export interface WantedContainer {
  readonly swarmId: string;
  readonly entry: SwarmContainer;
  readonly record: WorkerRecord;
  readonly surroundings: WorkerSurroundings;
}

/** Its id. Done again after an engine went away at any point, there is one container all the same. */
export async function makeContainer(
  { workers }: Pick<SwarmDeps, "workers">,
  { swarmId, entry, record: { plan, isKept }, surroundings }: WantedContainer,
  signal: AbortSignal,
): Promise<string> {
  const { containerName: name, taskFilePath, branchName } = entry;
  if (await workers.isKnown(name)) {
    const { exists, swarmState } = await workers.status(name, signal);
    if (exists && isKept) return await workers.restart(name, signal);
    // One without an entry: its maker was killed, or lost its engine, before it could say so, and nothing ran in it; or the worker
    // that had it was stopped and is begun anew.
    if (exists && (swarmState === "pending" || swarmState === "stopped")) await workers.remove(name);
  }
  const image = plan.image ?? surroundings.image;
  const { isolation } = plan;
  const { limits } = surroundings;
  const request = { swarmId, name, taskFilePath, branchName, image, isolation, limits };
  return (await workers.create(request, signal)).containerId;
}
