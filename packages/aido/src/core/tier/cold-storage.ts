import { AidoError } from "@aido/sdk/protocol";
import type { ContainerLauncher } from "../sandbox/container-launcher.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { TierSnapshots } from "./tier-snapshots.ts";

/** No upload takes longer; the container for it ends by itself then, should nobody be left to remove it. */
const UPLOAD_LIMIT_MS = 6 * 3_600_000;

/** Reads the files of a warm sandbox through a container that lives only for that, and that nothing else can use. */
export class ColdStorage {
  readonly #deps: SandboxDeps;
  readonly #launcher: ContainerLauncher;

  constructor(deps: SandboxDeps, launcher: ContainerLauncher) {
    this.#deps = deps;
    this.#launcher = launcher;
  }

  async upload(record: SandboxRecord, signal: AbortSignal): Promise<{ url: string; sha256: string }> {
    const { driver, supervisors } = this.#deps;
    const snapshots = this.snapshots();
    const limit = AbortSignal.any([signal, AbortSignal.timeout(UPLOAD_LIMIT_MS)]);
    const shown = { ...record, network: "none", privileged: false, ttlMs: UPLOAD_LIMIT_MS } as const;
    await driver.remove(record.id);
    try {
      await this.#launcher.bringUp(shown, limit);
      return await snapshots.upload(record, limit);
    } finally {
      supervisors.drop(record.id);
      await driver.remove(record.id);
    }
  }

  snapshots(): TierSnapshots {
    const snapshots = this.#deps.tiers?.snapshots;
    if (snapshots !== undefined) return snapshots;
    throw new AidoError("UNSUPPORTED", "No object store is set up for the files of sandboxes", {
      hint: "Set SANDBOX_SNAPSHOT_DESTINATION_PREFIX, for example to s3://bucket/snapshots/.",
    });
  }
}
