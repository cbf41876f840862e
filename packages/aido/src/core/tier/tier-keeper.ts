import { toAidoError } from "@aido/sdk/protocol";
import type { Counts } from "../metrics/counters.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";
import type { WayBack } from "./ways-back.ts";

/**
 * Moves the files of a stopped sandbox between its container, its image and its object. Whoever calls holds the
 * sandbox's claim. Every step first makes the new copy, then says so in the record, then removes the old one: what is
 * cut off in between leaves a copy too many, which `tidy` takes away, and never one too few.
 */
export class TierKeeper {
  readonly #deps: SandboxDeps;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
  }

  /** After a stop, so that the image is there early. A failure loses nothing: the container keeps the files. */
  async commitOnStop(id: string): Promise<void> {
    const { store, tiers, logger } = this.#deps;
    const record = await store.sandboxes.get(id);
    if (record?.state !== "stopped" || record.tier !== "hot") return;
    if (!(tiers?.autoCommit ?? (tiers !== undefined && record.profile === "sidecar"))) return;
    try {
      await this.commit(record);
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      logger.warn({ event: "tier.commit", sandboxId: id, code, message }, "No image was made of the sandbox");
    }
  }

  /** The image of a stopped container; undefined when the sandbox was destroyed meanwhile. */
  async commit(record: SandboxRecord, signal?: AbortSignal): Promise<SandboxRecord | undefined> {
    const { driver, evidence } = this.#deps;
    const { reference, bytes } = await driver.commit(record.id, signal);
    const patch = { warmImage: reference, warmIsStale: false };
    if (!(await this.keep(record.id, patch, { snapshots_committed: 1 }))) {
      await driver.removeImage(reference);
      return undefined;
    }
    await evidence.append(record.id, "tier.committed", { image: reference, bytes });
    await this.#sweep(record.id, reference);
    return { ...record, ...patch };
  }

  /** From hot to warm: its image takes the container's place. */
  async toWarm(record: SandboxRecord, signal?: AbortSignal): Promise<boolean> {
    const { driver, clock, evidence, supervisors } = this.#deps;
    const hasImage = !record.warmIsStale && (await this.hasImage(record));
    const kept = hasImage ? record : await this.commit(record, signal);
    if (kept === undefined) return false;
    const patch = { tier: "warm", tierSince: clock.now(), containerId: undefined } as const;
    if (!(await this.keep(record.id, patch, { gc_containers_removed: 1 }))) return false;
    supervisors.drop(record.id);
    await driver.remove(record.id);
    await this.#sweep(record.id, kept.warmImage);
    await evidence.append(record.id, "tier.warm", { image: kept.warmImage });
    return true;
  }

  /** Before an upload, so that what it leaves is found and removed though nobody lives to write down its end. */
  async expectUpload(record: SandboxRecord): Promise<void> {
    const snapshotUrl = this.#deps.tiers?.snapshots?.ownPlace(record);
    if (snapshotUrl === undefined) return;
    await this.keep(record.id, { snapshotUrl, snapshotIsStale: true });
  }

  /** From warm to cold, once its files are in the object store: they take the image's place. */
  async toCold(record: SandboxRecord, object: { url: string; sha256: string }): Promise<boolean> {
    const { clock, evidence, tiers } = this.#deps;
    const patch: SandboxPatch = {
      ...{ tier: "cold", tierSince: clock.now(), warmImage: undefined, warmIsStale: false },
      ...{ snapshotUrl: object.url, snapshotSha256: object.sha256, snapshotIsStale: false },
    };
    if (!(await this.keep(record.id, patch, { snapshots_uploaded: 1, gc_images_removed: 1 }))) {
      if (tiers?.snapshots?.isOperatorManaged(object.url) === true) await tiers.snapshots.remove(object.url);
      return false;
    }
    await this.#sweep(record.id, undefined);
    await evidence.append(record.id, "tier.cold", { sha256: object.sha256 });
    return true;
  }

  /** The record says which way it will come back before anything is made that way. */
  async enter(record: SandboxRecord, way: WayBack): Promise<SandboxRecord> {
    const { driver, clock, evidence, logger } = this.#deps;
    if (way === "hot" || way === "fresh") return record;
    let entered = record;
    if (record.tier !== way) {
      const isStale = way === "warm" ? record.warmIsStale : record.snapshotIsStale;
      const patch = { tier: way, tierSince: clock.now(), containerId: undefined } as const;
      await this.keep(record.id, patch);
      await evidence.append(record.id, "tier.fallback", { from: record.tier, to: way, isStale });
      logger.warn(
        { event: "tier.fallback", sandboxId: record.id, from: record.tier, to: way, isStale },
        isStale
          ? "Its last files are gone; those of an earlier stop are used"
          : "Another copy of its files is used",
      );
      entered = { ...record, ...patch };
    }
    await driver.remove(record.id);
    return entered;
  }

  /** Its container was removed behind aido's back: the last copy of its files counts from now on. */
  async settleLost(record: SandboxRecord): Promise<void> {
    const { clock, evidence } = this.#deps;
    const tier = (await this.hasImage(record))
      ? "warm"
      : record.snapshotSha256 === undefined
        ? undefined
        : "cold";
    const tierSince = tier && clock.now();
    await this.keep(record.id, { tier, tierSince, containerId: undefined });
    await evidence.append(record.id, "tier.fallback", { from: record.tier, to: tier });
  }

  /** Takes away what an interrupted step has left beside the copy that counts. */
  async tidy(record: SandboxRecord): Promise<void> {
    const { driver, supervisors } = this.#deps;
    if (record.state === "stopped" && (record.tier === "warm" || record.tier === "cold")) {
      supervisors.drop(record.id);
      await driver.remove(record.id);
    }
    await this.#sweep(record.id, record.warmImage);
  }

  /** Whether anything may be left of a sandbox besides its container. */
  hasCopies(record: SandboxRecord): boolean {
    return (
      record.tier !== undefined || record.warmImage !== undefined || this.ownObject(record) !== undefined
    );
  }

  /**
   * Of a destroyed sandbox: its images, and its object if that is the operator's. What cannot be removed now is
   * tried again by the collector; false says so.
   */
  async clear(record: SandboxRecord, counts: Counts = {}): Promise<boolean> {
    const { store, tiers, evidence, logger } = this.#deps;
    const { id } = record;
    try {
      const url = this.ownObject(record);
      await this.#sweep(id, undefined);
      if ((await this.#deps.driver.committedImages(id)).length > 0) throw new Error("an image is in use");
      if (url !== undefined) await tiers?.snapshots?.remove(url);
      const patch = { tier: undefined, tierSince: undefined, warmImage: undefined, snapshotUrl: undefined };
      await store.sandboxes.update(id, patch, url === undefined ? {} : counts);
      if (url !== undefined) await evidence.append(id, "snapshot.removed", {});
      return true;
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      logger.warn({ event: "tier.clear", sandboxId: id, code, message }, "Left to the next collection");
      return false;
    }
  }

  async hasImage({ id, warmImage }: SandboxRecord): Promise<boolean> {
    if (warmImage === undefined) return false;
    const images = await this.#deps.driver.committedImages(id);
    return images.some(({ reference }) => reference === warmImage);
  }

  /** Only as long as it is stopped: whoever destroys a sandbox takes its claim away. */
  keep(id: string, patch: SandboxPatch, counts: Counts = {}): Promise<boolean> {
    return this.#deps.store.sandboxes.transition(id, "stopped", "stopped", patch, counts);
  }

  /** The object that goes with the sandbox: the operator's, never a user's. */
  ownObject({ snapshotUrl }: SandboxRecord): string | undefined {
    const isOwn = snapshotUrl !== undefined && this.#deps.tiers?.snapshots?.isOperatorManaged(snapshotUrl);
    return isOwn === true ? snapshotUrl : undefined;
  }

  /** An image that another was made from goes after that one, and one that a container was made from stays. */
  async #sweep(id: string, keep: string | undefined): Promise<void> {
    const { driver } = this.#deps;
    for (;;) {
      const others = (await driver.committedImages(id)).filter(({ reference }) => reference !== keep);
      let removed = 0;
      for (const { reference } of others) removed += (await driver.removeImage(reference)) ? 1 : 0;
      if (removed === 0 || removed === others.length) return;
    }
  }
}
