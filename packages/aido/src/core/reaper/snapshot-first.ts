import type { SnapshotService } from "../snapshot/snapshot-service.ts";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";

/**
 * Uploads a sandbox's files before it is stopped, to where its owner wants them or else to the operator's place. Nothing
 * happens when there is no such place. What it answers with is true if the stop follows: until then somebody may come
 * back and change a file.
 */
export function snapshotFirst(
  snapshots: Pick<SnapshotService, "placeOf" | "takeKept">,
): (record: SandboxRecord, signal?: AbortSignal) => Promise<SandboxPatch | undefined> {
  return async (record, signal) => {
    if (snapshots.placeOf(record) === undefined) return undefined;
    await snapshots.takeKept(record, { signal });
    return { snapshotIsStale: false };
  };
}
