import type { Progress } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { SnapshotService } from "../snapshot/snapshot-service.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { TierSnapshots } from "./tier-snapshots.ts";

type Service = Pick<
  SnapshotService,
  "takeFrom" | "restoreTo" | "prove" | "remove" | "isOperatorManaged" | "placeOf"
>;

/** Tiers on the same snapshots that users take: one object of the workspace, where its owner or the operator wants it. */
export class StoredSnapshots implements TierSnapshots {
  readonly hasOwnPlace: boolean;
  readonly #service: () => Service;

  constructor(service: () => Service, hasOwnPlace: boolean) {
    this.#service = service;
    this.hasOwnPlace = hasOwnPlace;
  }

  ownPlace(record: SandboxRecord): string | undefined {
    return record.snapshotDestination === undefined ? this.#service().placeOf(record) : undefined;
  }

  async upload(record: SandboxRecord, signal: AbortSignal): Promise<{ url: string; sha256: string }> {
    const taken = await this.#service().takeFrom(record, { signal });
    await this.#service().prove(taken, signal);
    return { url: taken.url, sha256: taken.sha256 };
  }

  async restore(
    record: SandboxRecord,
    options: { signal: AbortSignal; onProgress?: Progress | undefined },
  ): Promise<void> {
    const { id, snapshotUrl, snapshotSha256 } = record;
    if (snapshotUrl === undefined) {
      throw new AidoError("OBJECT_NOT_FOUND", `Sandbox ${id} has no snapshot to come back from`);
    }
    await this.#service().restoreTo(record, snapshotUrl, { sha256: snapshotSha256, ...options });
  }

  isOperatorManaged(url: string): boolean {
    return this.#service().isOperatorManaged(url);
  }

  async remove(url: string, signal?: AbortSignal): Promise<void> {
    await this.#service().remove(url, signal);
  }
}
