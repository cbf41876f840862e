import type { Progress } from "@aido/sdk";
import type { CreateSandbox, EndReason, Network } from "@aido/sdk/protocol";
import type { Mount } from "../driver/driver.ts";
import type { Counts } from "../metrics/counters.ts";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";

/**
 * The steps between "it is wanted" and "its container is gone", for core's own services. Front ends use
 * `Sandboxes`. Each step holds the sandbox's claim, so two processes never work on one sandbox at once: the
 * second is refused with CONTAINER_BUSY.
 */
export interface SandboxLifecycle {
  /**
   * Checks the request, writes the record in state `pending` and makes `<dataDir>/sandboxes/<id>/`. Makes no
   * container and fetches no image. A prepared sandbox stays until it is launched or destroyed.
   */
  prepare(request: CreateSandbox, options?: PrepareOptions): Promise<SandboxRecord>;
  /** Makes the image of a prepared sandbox available, without making a container. */
  fetchImage(
    sandboxId: string,
    options?: { signal?: AbortSignal | undefined; onProgress?: Progress | undefined },
  ): Promise<void>;
  /**
   * From `pending` or `stopped` to `running`: a fresh container with the record's mounts, ready for execs when
   * this resolves. Its ttl counts from here. On failure the container is removed, `sandbox.failed` is recorded
   * and the state is `stopped` with reason `failed`; record and directory stay.
   */
  launch(sandboxId: string, options?: LaunchOptions): Promise<SandboxRecord>;
  /**
   * Ends what runs and removes the container; record and directory stay, the state is `stopped`, and nothing
   * is due any more. A reason that is already recorded (a timeout, out of memory) is kept. Idempotent.
   */
  finish(sandboxId: string, reason: EndReason, options?: { graceMs?: number }): Promise<SandboxRecord>;
  /** Tells the evidence what a sandbox that runs on has changed so far; `finish` does so by itself. */
  tellChanges(sandboxId: string): Promise<void>;
  /**
   * Resolves with the record once the sandbox no longer runs, whoever ended it: its ttl, its own end, another
   * process, the disk limit. Rejects with the signal's reason when that comes first.
   */
  untilEnded(sandboxId: string, signal: AbortSignal): Promise<SandboxRecord>;
}

export interface StopOptions {
  graceMs?: number;
  signal?: AbortSignal;
  /** What is recorded when it ends because of this; `stopped` when absent. */
  reason?: EndReason;
  detail?: Readonly<Record<string, unknown>>;
  counts?: Counts;
  /** Written down together with the end. */
  patch?: SandboxPatch;
  /** Asked last, when no other process can change it any more; unless this says true it runs on. */
  onlyIf?: (record: SandboxRecord) => Promise<boolean>;
}

export interface PrepareOptions {
  /** Directories and files of aido's own; their sources are made by the caller before `launch`. */
  mounts?: ((sandboxId: string) => readonly Mount[]) | undefined;
  actor?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface LaunchOptions {
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
  /** Replace what the record says, for this launch and later ones. */
  mounts?: readonly Mount[] | undefined;
  network?: Network | undefined;
  privileged?: boolean | undefined;
  actor?: string | undefined;
}
