import { isAidoError } from "@aido/sdk/protocol";
import { DOUBT_MS } from "../clock-jumps.ts";
import type { Container } from "../driver/driver.ts";
import type { Claim, SandboxRecord } from "../store/store.ts";
import { TierKeeper } from "../tier/tier-keeper.ts";
import { isStop, type SandboxClaims } from "./sandbox-claims.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";

const BATCH = 1000;

/**
 * Makes the store agree with the driver: the driver is the truth about what runs, the store about what should.
 * Costs what has a container, what is due and what was left half done; touches only containers that the driver lists.
 */
export class Reconciler {
  readonly #deps: SandboxDeps;
  readonly #ender: SandboxEnder;
  readonly #claims: SandboxClaims;
  readonly #tiers: TierKeeper;

  constructor(deps: SandboxDeps, ender: SandboxEnder, claims: SandboxClaims) {
    this.#deps = deps;
    this.#tiers = new TierKeeper(deps);
    this.#ender = ender;
    this.#claims = claims;
  }

  /** Of everything; call it at start and before a list is shown. */
  async reconcile(): Promise<void> {
    const { driver, store } = this.#deps;
    // The store is read first: what starts meanwhile is in the driver's list, never missing from it.
    const running = await this.#running();
    const containers = new Map((await driver.list()).map((container) => [container.sandboxId, container]));
    for (const record of running) await this.#settle(record, containers.get(record.id));
    for (const claim of await this.#claims.abandoned()) await this.#finishAbandoned(claim);
    for (const container of containers.values()) {
      const record = await store.sandboxes.get(container.sandboxId);
      if (record?.state === "deleted") await this.#ender.removeContainer(record.id);
    }
    await this.expire().catch((thrown: unknown) => {
      if (!isAway(thrown)) throw thrown;
    });
  }

  /** Of one sandbox, by asking for its container alone. */
  async reconcileOne(record: SandboxRecord): Promise<SandboxRecord> {
    const { driver, store } = this.#deps;
    if (record.driver !== driver.name) return record;
    if (record.state === "running") await this.#settle(record, await driver.inspect(record.id));
    const claim = await store.claims.get(record.id);
    if (claim !== undefined && this.#claims.isAbandoned(claim)) await this.#finishAbandoned(claim);
    await this.expireOne(record);
    return (await store.sandboxes.get(record.id)) ?? record;
  }

  /** Ends every sandbox whose time is over. One that cannot be ended keeps no other from its end. */
  async expire(): Promise<number> {
    const { store, clock, driver, jumps } = this.#deps;
    if (jumps.within(DOUBT_MS)) return 0;
    const due = await store.sandboxes.due(clock.now(), BATCH);
    const own = due.filter((record) => record.driver === driver.name);
    const failures: unknown[] = [];
    for (const record of own) await this.expireOne(record).catch((thrown: unknown) => failures.push(thrown));
    if (failures.length > 0) throw failures[0];
    return own.length;
  }

  /** A running sandbox ends by its supervisor's clock, which nobody sets: that ours was set hurries nothing. */
  #isOver({ expiresAt }: SandboxRecord): boolean {
    const { clock, jumps } = this.#deps;
    return expiresAt !== undefined && expiresAt <= clock.now() && !jumps.within(DOUBT_MS);
  }

  async #running(): Promise<SandboxRecord[]> {
    const { store, driver } = this.#deps;
    const found: SandboxRecord[] = [];
    let before: string | undefined;
    for (;;) {
      const page = await store.sandboxes.list({ states: ["running"], limit: BATCH, before });
      found.push(...page.filter((record) => record.driver === driver.name));
      before = page.at(-1)?.id;
      if (page.length < BATCH) return found;
    }
  }

  async #settle(record: SandboxRecord, container: Container | undefined): Promise<void> {
    if (container?.state === "running" || container?.state === "unreachable") return;
    // A sandbox that is started, stopped or destroyed right now belongs to the process that does it.
    const claim = await this.#deps.store.claims.get(record.id);
    if (claim !== undefined && !this.#claims.isAbandoned(claim)) return;
    const reason = await this.#ender.reasonFor(record, container);
    const detail = container?.exitCode === undefined ? {} : { exitCode: container.exitCode };
    const wasIdle = claim?.purpose === "idle" && (reason === "stopped" || reason === "lost");
    if (wasIdle) await this.#ender.markEnded(record.id, "idle", { detail, counts: { reaped_idle: 1 } });
    else await this.#ender.markEnded(record.id, reason, { detail });
  }

  async #finishAbandoned(claim: Claim): Promise<void> {
    const { store, driver } = this.#deps;
    const record = await store.sandboxes.get(claim.sandboxId);
    if (record !== undefined && record.driver !== driver.name) return;
    try {
      await this.#claims.hold(claim.sandboxId, claim.purpose, async () => {
        // Read again: another process may have finished it, and somebody uses the sandbox since.
        const now = await store.sandboxes.get(claim.sandboxId);
        if (now !== undefined) await this.#finish(claim, now);
      });
    } catch (thrown) {
      if (!isAidoError(thrown, "CONTAINER_BUSY") && !isAway(thrown)) throw thrown;
    }
  }

  async #finish(claim: Claim, record: SandboxRecord): Promise<void> {
    const { evidence, driver, store } = this.#deps;
    if (claim.purpose === "destroy") return await this.#ender.destroy(record, record.endReason);
    if (claim.purpose === "expire") return await this.#finishExpiry(record);
    if (claim.purpose === "collect" && record.state === "deleted")
      return await this.#ender.destroy(record, record.endReason, { garbage_collected: 1 });
    await this.#tiers.tidy(record);
    // Nobody stops it any more.
    if (isStop(claim)) {
      await store.sandboxes.transition(record.id, "running", "running", { stoppedAt: undefined });
    }
    // What is not collected yet comes again at the next collection, if it is still due then.
    const isOver = isStop(claim) || claim.purpose === "demote" || claim.purpose === "collect";
    if (isOver || record.state === "running" || record.state === "deleted") return;
    await evidence.append(record.id, "sandbox.failed", {
      step: claim.purpose,
      message: "The process that was starting it has died",
    });
    if (claim.purpose === "create") await this.#ender.destroy(record, "failed");
    // What it was being filled from is still there, and what it was filled into has been tidied away.
    else if (record.tier === "warm" || record.tier === "cold") return;
    else if (record.state === "stopped" && record.containerId !== undefined) await driver.stop(record.id, 0);
    else await this.#ender.retire(record, "failed");
  }

  /** A run's results outlive its ttl; any other sandbox goes as a whole. False when it was given more time meanwhile. */
  async expireOne({ id }: SandboxRecord): Promise<boolean> {
    // Whoever has its claim loses it only for a sandbox that is due.
    if ((await this.#stillDue(id)) === undefined) return false;
    let isDue = true;
    await this.#claims.seize(id, "expire", async () => {
      isDue = await this.#expireNow(id);
    });
    return isDue;
  }

  async #expireNow(id: string): Promise<boolean> {
    const { store, evidence } = this.#deps;
    const record = await this.#stillDue(id);
    if (record === undefined) return false;
    await evidence.append(id, "sandbox.expired", { ttlMs: record.ttlMs });
    const run = await store.runs.get(id);
    if (run === undefined) await this.#ender.destroy(record, "timeout", { reaped_lifetime: 1 });
    else await this.#ender.retire(record, "timeout");
    return true;
  }

  /** Unless it was given more time meanwhile. One that is deleted was counted with that. */
  async #finishExpiry(record: SandboxRecord): Promise<void> {
    if (record.state === "deleted") await this.#ender.destroy(record, record.endReason);
    else await this.#expireNow(record.id);
  }

  async #stillDue(id: string): Promise<SandboxRecord | undefined> {
    const record = await this.#deps.store.sandboxes.get(id);
    if (record === undefined || !this.#isOver(record)) return undefined;
    return record.state === "deleted" || record.state === "pending" ? undefined : record;
  }
}

/** What has the sandbox does not answer: others can be looked after all the same, and this one at the next look. */
function isAway(thrown: unknown): boolean {
  return isAidoError(thrown, "RUNTIME_UNAVAILABLE");
}
