import { type EndReason, toAidoError } from "@aido/sdk/protocol";
import type { Container } from "../driver/driver.ts";
import type { Counts } from "../metrics/counters.ts";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";
import { SUPERVISOR_EXIT } from "../supervisor/protocol.ts";
import { TierKeeper } from "../tier/tier-keeper.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { removeTree } from "./remove-tree.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { StopOptions } from "./sandbox-lifecycle.ts";

/** Kept of a destroyed sandbox: what it was, not what it held. */
const FORGET: SandboxPatch = {
  env: {},
  imageEnv: {},
  mounts: [],
  supervisorToken: "",
  tokenHash: undefined,
  expiresAt: undefined,
  snapshotDestination: undefined,
  snapshotSha256: undefined,
};

/** The ways a sandbox comes to its end, each safe to repeat and to be interrupted. */
export class SandboxEnder {
  readonly #deps: SandboxDeps;
  readonly #tiers: TierKeeper;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#tiers = new TierKeeper(deps);
  }

  /** From running to stopped; false when another was first, whose reason then counts. */
  async markEnded(
    id: string,
    reason: EndReason,
    { detail, counts, patch: more }: Pick<StopOptions, "detail" | "counts" | "patch"> = {},
  ): Promise<boolean> {
    const { store, clock, evidence } = this.#deps;
    const now = clock.now();
    const profile = (await store.sandboxes.get(id))?.profile;
    // Asleep, a sidecar sandbox is kept as long as its tier is; its life goes on when it is started.
    const sleeps = profile !== undefined && PROFILE_DEFAULTS[profile].hasSidecar && reason !== "timeout";
    const patch: SandboxPatch = {
      ...{ endReason: reason, stoppedAt: now, tier: "hot", tierSince: now },
      ...(sleeps ? { expiresAt: undefined } : {}),
      ...more,
    };
    const isFirst = await store.sandboxes.transition(id, "running", "stopped", patch, counts);
    if (!isFirst) return false;
    await evidence.append(id, "sandbox.stopped", { reason, ...detail });
    return true;
  }

  /** Why a container that no longer runs has ended. */
  async reasonFor(record: SandboxRecord, container: Container | undefined): Promise<EndReason> {
    const { store, clock } = this.#deps;
    if (container?.exitCode === SUPERVISOR_EXIT.deadline) return "timeout";
    if (container?.outOfMemory) return "out_of_memory";
    const run = await store.runs.get(record.id);
    if (run?.status === "completed" || run?.status === "failed" || run?.status === "timeout")
      return run.status;
    if (container?.exitCode === SUPERVISOR_EXIT.shutdown) return "stopped";
    const isOver = record.expiresAt !== undefined && record.expiresAt <= clock.now();
    return isOver ? "timeout" : "lost";
  }

  /** Container, record, directory, in this order: what is interrupted is found and finished by the reconciler. */
  async destroy(record: SandboxRecord, reason: EndReason | undefined, counts?: Counts): Promise<void> {
    const { driver, store, clock, evidence, supervisors, dataDir } = this.#deps;
    await driver.remove(record.id);
    supervisors.drop(record.id);
    const copies = (await store.sandboxes.get(record.id)) ?? record;
    const hasCopies = this.#tiers.hasCopies(copies);
    const isFirst = await store.sandboxes.transition(
      record.id,
      ["pending", "running", "stopped"],
      "deleted",
      {
        ...FORGET,
        endReason: record.endReason ?? reason,
        stoppedAt: record.stoppedAt ?? clock.now(),
        // A user's address may be signed; ours is needed until the object is removed.
        ...(this.#tiers.ownObject(copies) === undefined ? { snapshotUrl: undefined } : {}),
        // Until all copies of its files are cleared away.
        ...(hasCopies ? { tier: "gone", tierSince: clock.now() } : {}),
      },
      counts,
    );
    if (hasCopies) await this.#tiers.clear(copies, counts?.garbage_collected ? { gc_s3_cleaned: 1 } : {});
    await store.execs.removeAll(record.id);
    await store.runs.remove(record.id);
    await store.agentSessions.removeAll(record.id);
    await store.sshKeys.removeAll(record.id);
    await store.workspaces.release(record.id, clock.now());
    if (isFirst)
      await evidence.append(record.id, "sandbox.destroyed", reason === undefined ? {} : { reason });
    await evidence.archive(record.id);
    await removeTree(dataDir.sandbox(record.id));
  }

  /** Removes the container and what is due; record and directory stay. */
  async retire(record: SandboxRecord, reason: EndReason): Promise<void> {
    const { driver, store, supervisors } = this.#deps;
    supervisors.letGo(record.id);
    await driver.remove(record.id);
    supervisors.drop(record.id);
    await this.markEnded(record.id, reason);
    await store.sandboxes.transition(record.id, "pending", "stopped", { endReason: reason });
    await store.sandboxes.update(record.id, {
      expiresAt: undefined,
      containerId: undefined,
      tier: undefined,
      tierSince: undefined,
    });
  }

  /** After a failed step: nothing of it may stay behind, and the first failure is the one that is told. */
  async removeContainer(id: string): Promise<void> {
    const { driver, supervisors, logger } = this.#deps;
    supervisors.drop(id);
    try {
      await driver.remove(id);
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      logger.warn(
        { event: "container.remove", sandboxId: id, code, message },
        "The container is left behind",
      );
    }
  }
}
