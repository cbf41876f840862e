import { isAidoError, toAidoError } from "@aido/sdk/protocol";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";
import type { SandboxClaims } from "./sandbox-claims.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";

interface StartupParts {
  claims: SandboxClaims;
  ender: SandboxEnder;
  start: (sandboxId: string) => Promise<unknown>;
}

const PAGE = 1000;

/**
 * What happened to containers while no server looked. Done once, when a server starts, after the store knows what runs:
 * a stopped sandbox whose container is gone is what its image or object holds, or nothing any more; one whose
 * container somebody has started runs. Containers that no record knows are left alone.
 */
export class StartupReconciler {
  readonly #deps: SandboxDeps;
  readonly #parts: StartupParts;

  constructor(deps: SandboxDeps, parts: StartupParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { driver, store } = this.#deps;
    const stopped: SandboxRecord[] = [];
    for (let before: string | undefined; ; ) {
      const page = await store.sandboxes.list({ states: ["stopped"], limit: PAGE, before });
      stopped.push(...page.filter((record) => record.driver === driver.name && hadContainer(record)));
      before = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
    if (stopped.length === 0) return;
    const containers = new Map((await driver.list()).map((container) => [container.sandboxId, container]));
    for (const record of stopped) {
      const container = containers.get(record.id);
      if (container === undefined) await this.#each(record, () => this.#lost(record.id));
      else if (container.state === "running") await this.#each(record, () => this.#parts.start(record.id));
    }
  }

  /** One that cannot be settled keeps no server from starting. */
  async #each({ id }: SandboxRecord, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (isAidoError(thrown, "CONTAINER_BUSY")) return;
      const { code, message } = toAidoError(thrown);
      this.#deps.logger.warn({ event: "sandbox.settle", sandboxId: id, code, message }, "Not settled");
    }
  }

  async #lost(id: string): Promise<void> {
    const { driver, store, evidence } = this.#deps;
    await this.#parts.claims.hold(id, "stop", async () => {
      const record = await store.sandboxes.get(id);
      // The list was made before the claim: somebody may have been at it since.
      if (record?.state !== "stopped" || !hadContainer(record)) return;
      if ((await driver.inspect(id)) !== undefined) return;
      const copy = this.#copyOf(record);
      if (copy !== undefined) {
        await store.sandboxes.update(id, copy);
        await evidence.append(id, "sandbox.container_lost", { tier: copy.tier });
        return;
      }
      // A run's results and what others may still want to look at are not the container's.
      if (record.profile !== "sidecar" || (await store.runs.get(id)) !== undefined) return;
      await evidence.append(id, "sandbox.container_lost", {});
      await this.#parts.ender.destroy(record, "lost");
    });
  }

  /** What a sandbox can come back from without its container; what is newer comes first. */
  #copyOf(record: SandboxRecord): SandboxPatch | undefined {
    const { warmImage, warmIsStale, snapshotSha256, snapshotIsStale } = record;
    const isCold =
      snapshotSha256 !== undefined && (warmImage === undefined || (warmIsStale && !snapshotIsStale));
    if (!isCold && warmImage === undefined) return undefined;
    const tier = isCold ? "cold" : "warm";
    return { tier, tierSince: this.#deps.clock.now(), containerId: undefined };
  }
}

/** In the other tiers a container is a leftover, and its absence no loss. */
function hadContainer({ containerId, tier }: SandboxRecord): boolean {
  return containerId !== undefined && (tier === undefined || tier === "hot");
}
