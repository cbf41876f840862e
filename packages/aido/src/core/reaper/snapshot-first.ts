import type { SnapshotService } from "../snapshot/snapshot-service.ts";
import type { SandboxRecord, SandboxStore } from "../store/store.ts";

/**
 * Uploads a sandbox's files before it is stopped, to where its owner wants them or else to the operator's place, and
 * notes where they are. Nothing happens when there is no such place.
 */
export function snapshotFirst(
  snapshots: Pick<SnapshotService, "destinationOf" | "takeFrom">,
  sandboxes: Pick<SandboxStore, "update">,
): (record: SandboxRecord, signal?: AbortSignal) => Promise<void> {
  return async (record, signal) => {
    const destination = record.snapshotDestination ?? snapshots.destinationOf(record.id);
    if (destination === undefined) return;
    const { url, sha256 } = await snapshots.takeFrom(record, { destination, ...(signal && { signal }) });
    const kept = { snapshotUrl: url, snapshotSha256: sha256, snapshotIsStale: false };
    await sandboxes.update(record.id, kept, { snapshots_uploaded: 1 });
  };
}
