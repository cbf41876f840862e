import { AidoError } from "@aido/sdk/protocol";
import { isAllAtOrigin } from "../records/worker-record.ts";
import { isActive, type SwarmContainer, type SwarmState } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import { shortWorkerName } from "../workers/worker-name.ts";

/** Refuses to replace workers that have ended with work in their containers alone. */
export async function refuseUnsaved(
  { workers, records }: Pick<SwarmDeps, "workers" | "records">,
  { swarmId, containers }: SwarmState,
  isReplaced: (entry: SwarmContainer) => boolean,
): Promise<void> {
  for (const entry of containers) {
    const { containerName: worker, status } = entry;
    if (isActive(entry) || status === "completed" || !isReplaced(entry)) continue;
    const record = await records.read(swarmId, worker);
    if (record !== undefined && isAllAtOrigin(record)) continue;
    if (!(await workers.status(worker)).exists) continue;
    const name = shortWorkerName(worker);
    throw new AidoError(
      "SWARM_ACTIVE",
      `${worker} has ended, and its container may have work that origin has not`,
      {
        hint: `Go on with it: \`aido swarm resume ${name}\`. Give that work up: \`aido swarm cleanup\`, or \`aido swarm --force\`.`,
        details: { worker },
      },
    );
  }
}
