import type { Progress } from "./aido.ts";

/** A sandbox's files as one object: a compressed tar with a manifest, outside the sandbox's reach. */
export interface SnapshotInfo {
  /** Where the object is. */
  url: string;
  /** Of the object, in hex; `restore` takes nothing else for it. */
  sha256: string;
  /** Size of the object. */
  bytes: number;
  createdAt: Date;
}

export interface TakeSnapshot {
  /** Address of the object; when left out, the sandbox's place: beneath its own destination, or else the operator's. */
  destination?: string | undefined;
  /** The working directory; true by default. */
  includeWorkspace?: boolean | undefined;
  /** /var/lib/sidecar, where services inside keep theirs; false by default. */
  includeState?: boolean | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
}

export interface RestoreSnapshot {
  /** As `take` gave it; without it only the object's own hash is checked. */
  sha256?: string | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
}

export interface Snapshots {
  /** The sandbox runs on meanwhile. All or nothing: a failure leaves what was at the destination before. */
  take(sandbox: string, options?: TakeSnapshot): Promise<SnapshotInfo>;
  /** Replaces the files of a running sandbox. A broken object raises OBJECT_BROKEN and replaces nothing. */
  restore(sandbox: string, url: string, options?: RestoreSnapshot): Promise<void>;
}
