import { isAidoError } from "@aido/sdk/protocol";
import { ContainerLauncher } from "../sandbox/container-launcher.ts";
import { SandboxClaims } from "../sandbox/sandbox-claims.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import { SandboxEnder } from "../sandbox/sandbox-ender.ts";
import type { SandboxRecord } from "../store/store.ts";
import { ColdStorage } from "./cold-storage.ts";
import { TierKeeper } from "./tier-keeper.ts";

/** Puts one sandbox into the next tier. Two processes at one sandbox: the second is refused with CONTAINER_BUSY. */
export class Demotion {
  readonly #deps: SandboxDeps;
  readonly #claims: SandboxClaims;
  readonly #cold: ColdStorage;
  readonly #ender: SandboxEnder;
  readonly #keeper: TierKeeper;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#claims = new SandboxClaims(deps);
    this.#cold = new ColdStorage(deps, new ContainerLauncher(deps));
    this.#ender = new SandboxEnder(deps);
    this.#keeper = new TierKeeper(deps);
  }

  /** False when there was nothing to do: it was resumed, moved or destroyed since it was looked at. */
  async demote(due: SandboxRecord, signal: AbortSignal): Promise<boolean> {
    const isLast = due.tier === "cold" || due.tier === "gone";
    return await this.#claims.hold(due.id, isLast ? "collect" : "demote", async (lost) => {
      const record = await this.#deps.store.sandboxes.get(due.id);
      if (record === undefined || record.tier !== due.tier) return false;
      if (record.tierSince?.getTime() !== due.tierSince?.getTime()) return false;
      const either = AbortSignal.any([signal, lost]);
      either.throwIfAborted();
      return await this.#step(record, either);
    });
  }

  /** Images that no record counts on: what a process left that died with them half made. */
  async sweep(): Promise<void> {
    const { driver, store } = this.#deps;
    const images = new Map<string, string[]>();
    for (const { sandboxId, reference } of await driver.committedImages())
      images.set(sandboxId, [...(images.get(sandboxId) ?? []), reference]);
    for (const [id, references] of images) {
      const record = await store.sandboxes.get(id);
      if (record === undefined || record.driver !== driver.name) continue;
      const isDeleted = record.state === "deleted";
      if (!isDeleted && references.every((reference) => reference === record.warmImage)) continue;
      await this.#claims
        .hold(id, isDeleted ? "collect" : "demote", async () => {
          const now = await store.sandboxes.get(id);
          if (now?.state === "deleted") await this.#keeper.clear(now, { gc_s3_cleaned: 1 });
          else if (now !== undefined) await this.#keeper.tidy(now);
        })
        .catch((thrown: unknown) => {
          if (!isAidoError(thrown, "CONTAINER_BUSY")) throw thrown;
        });
    }
  }

  async #step(record: SandboxRecord, signal: AbortSignal): Promise<boolean> {
    switch (record.tier) {
      case "hot":
        return await this.#warm(record, signal);
      case "warm":
        await this.#keeper.expectUpload(record);
        return await this.#keeper.toCold(record, await this.#cold.upload(record, signal));
      case "cold":
        await this.#ender.destroy(record, record.endReason, { garbage_collected: 1 });
        return true;
      case "gone":
        return await this.#keeper.clear(record, { gc_s3_cleaned: 1 });
      default:
        return false;
    }
  }

  /** A container that somebody else removed leaves what was kept of it before, if anything was. */
  async #warm(record: SandboxRecord, signal: AbortSignal): Promise<boolean> {
    try {
      return await this.#keeper.toWarm(record, signal);
    } catch (thrown) {
      if (!isAidoError(thrown, "CONTAINER_NOT_FOUND")) throw thrown;
      await this.#keeper.settleLost(record);
      return false;
    }
  }
}
