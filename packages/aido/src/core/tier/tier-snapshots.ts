import type { Progress } from "@aido/sdk";
import type { SandboxRecord } from "../store/store.ts";

/** How the files of a sandbox get into the object store and back; its container runs meanwhile. */
export interface TierSnapshots {
  /** Whether there is a place for sandboxes that name none of their own. */
  readonly hasOwnPlace: boolean;
  /** The operator's place for this sandbox; undefined when its files go to one of its own, or nowhere. */
  ownPlace(record: SandboxRecord): string | undefined;
  /** All or nothing: what it answers with is there as a whole, as far as the object store can be asked. */
  upload(record: SandboxRecord, signal: AbortSignal): Promise<{ url: string; sha256: string }>;
  /** Raises when the object is not, byte for byte, what was uploaded. */
  restore(
    record: SandboxRecord,
    options: { signal: AbortSignal; onProgress?: Progress | undefined },
  ): Promise<void>;
  /** Beneath the operator's prefix; anything else belongs to somebody who has not asked for its removal. */
  isOperatorManaged(url: string): boolean;
  /** Idempotent. */
  remove(url: string, signal?: AbortSignal): Promise<void>;
}

export interface TierOptions {
  /** Whether a stop makes the image at once. Undefined: for sandboxes of profile sidecar. */
  readonly autoCommit?: boolean | undefined;
  readonly snapshots?: TierSnapshots | undefined;
}
