import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../../src/core/store/store.ts";
import { TierCollector } from "../../src/core/tier/collector.ts";
import type { TierOptions, TierSnapshots } from "../../src/core/tier/tier-snapshots.ts";
import type { FakeDriver } from "../../src/drivers/fake/fake-driver.ts";
import { type BedOptions, sandboxBed } from "../sandbox/sandbox-bed.ts";

export const DAY_MS = 86_400_000;
export const RETENTIONS = { hotMs: DAY_MS, warmMs: 2 * DAY_MS, coldMs: 7 * DAY_MS };
const PREFIX = "s3://operator/";

/** An object store in memory that keeps one file of each sandbox. */
export class FakeSnapshots implements TierSnapshots {
  readonly objects = new Map<string, string>();
  readonly failures: Error[] = [];
  hasOwnPlace = true;
  driver: FakeDriver | undefined;
  /** Called while an upload or a restore is on its way. */
  during: (record: SandboxRecord) => Promise<void> = async () => undefined;

  ownPlace({ id, snapshotDestination }: SandboxRecord): string | undefined {
    return snapshotDestination === undefined && this.hasOwnPlace ? `${PREFIX}${id}/snapshot` : undefined;
  }

  async upload(record: SandboxRecord): Promise<{ url: string; sha256: string }> {
    const content = await this.driver?.files(record.id).readFile(record.workdir, "kept");
    await this.during(record);
    this.#maybeFail();
    const url = record.snapshotDestination ?? `${PREFIX}${record.id}/snapshot`;
    this.objects.set(url, String(content));
    return { url, sha256: hash(String(content)) };
  }

  async restore(record: SandboxRecord): Promise<void> {
    await this.during(record);
    this.#maybeFail();
    const content = this.objects.get(record.snapshotUrl ?? "");
    if (content === undefined) throw new AidoError("OBJECT_NOT_FOUND", "There is no such object");
    if (hash(content) !== record.snapshotSha256) throw new AidoError("OBJECT_BROKEN", "It has changed");
    await this.driver?.files(record.id).writeFile(record.workdir, "kept", content);
  }

  isOperatorManaged(url: string): boolean {
    return url.startsWith(PREFIX);
  }

  async remove(url: string): Promise<void> {
    this.#maybeFail();
    this.objects.delete(url);
  }

  #maybeFail(): void {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A sandbox service with tiers, an object store in memory and a collector. */
export function tierBed(tiers: TierOptions = {}, options: BedOptions = {}) {
  const snapshots = new FakeSnapshots();
  const bed = sandboxBed({ ...options, tiers: { snapshots, ...tiers } });
  snapshots.driver = bed.driver;
  const collectorOf = (name: string) => new TierCollector(bed.depsOf(name), RETENTIONS);
  const read = async (id: string) => String(await bed.driver.files(id).readFile("/work", "kept"));
  return Object.assign(bed, {
    snapshots,
    collectorOf,
    gc: collectorOf("p1"),
    read,
    record: (id: string) => bed.store.sandboxes.get(id),
    images: async () => (await bed.driver.committedImages()).map(({ reference }) => reference),
    /** A stopped sandbox with one file, in the tier that is asked for. */
    async stopped(tier: "hot" | "warm" | "cold" = "hot", request = {}): Promise<string> {
      const { id } = await bed.sandboxes.create(request);
      await bed.driver.files(id).writeFile("/work", "kept", `files of ${id}`);
      await bed.sandboxes.stop(id);
      const collector = collectorOf("p1");
      for (const wanted of ["warm", "cold"]) {
        if (tier === "hot" || (await bed.store.sandboxes.get(id))?.tier === tier) return id;
        await bed.clock.advance(2 * DAY_MS);
        await collector.collect();
        if (wanted === tier) return id;
      }
      return id;
    },
  });
}
