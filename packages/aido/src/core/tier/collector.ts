import type { CollectReport, Gc } from "@aido/sdk";
import { isAidoError, type Tier, toAidoError } from "@aido/sdk/protocol";
import { atOnce } from "../at-once.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxRecord } from "../store/store.ts";
import { Demotion } from "./demotion.ts";

/** How long a stopped sandbox stays in each tier. */
export interface Retentions {
  readonly hotMs: number;
  readonly warmMs: number;
  readonly coldMs: number;
}

type Options = NonNullable<Parameters<Gc["collect"]>[0]>;
type Findings = { [Key in keyof CollectReport]: CollectReport[Key][number][] };

/** Read from the store together; what is due may be any number. */
const PAGE = 100;
const STEPS_AT_ONCE = 4;
/** The last first: whatever is moved now waits for its next step until the next collection. */
const ORDER = ["gone", "cold", "warm", "hot"] as const;
const MOVED = { hot: "warmed", warm: "cooled", cold: "removed", gone: "removed" } as const;

/** Costs what is due, not what exists. Two at once, in one process or in several, move each sandbox once. */
export class TierCollector implements Gc {
  readonly #deps: SandboxDeps;
  readonly #retentions: Retentions;
  readonly #demotion: Demotion;
  #collecting: Promise<CollectReport> | undefined;
  #hasSwept = false;

  constructor(deps: SandboxDeps, retentions: Retentions) {
    this.#deps = deps;
    this.#retentions = retentions;
    this.#demotion = new Demotion(deps);
  }

  collect(options: Options = {}): Promise<CollectReport> {
    if (options.dryRun === true) return this.#look();
    this.#collecting ??= this.#collect(options.signal ?? new AbortController().signal).finally(() => {
      this.#collecting = undefined;
    });
    return this.#collecting;
  }

  async #look(): Promise<CollectReport> {
    const findings = nothing();
    for (const tier of ORDER) {
      for await (const page of this.#due(tier)) findings[MOVED[tier]].push(...page.map(({ id }) => id));
    }
    return findings;
  }

  async #collect(signal: AbortSignal): Promise<CollectReport> {
    const findings = nothing();
    if (!this.#hasSwept) {
      await this.#demotion.sweep();
      this.#hasSwept = true;
    }
    await this.#sayWhoStays();
    for (const tier of ORDER) {
      for await (const page of this.#due(tier)) {
        await atOnce(STEPS_AT_ONCE, page, (record) => this.#each(record, tier, findings, signal));
      }
    }
    return findings;
  }

  /** One that cannot be moved keeps no other from it. */
  async #each(record: SandboxRecord, tier: Tier, findings: Findings, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    try {
      if (await this.#demotion.demote(record, signal)) findings[MOVED[tier]].push(record.id);
    } catch (thrown) {
      signal.throwIfAborted();
      // Somebody resumes or destroys it: nothing to collect any more.
      if (isAidoError(thrown, "CONTAINER_BUSY")) return;
      const { code, message } = toAidoError(thrown);
      findings.failed.push({ id: record.id, code, message });
      this.#deps.logger.warn({ event: "tier.demote", sandboxId: record.id, tier, code, message }, "It stays");
    }
  }

  /** Page after page, each from the end of the one before: what cannot be moved keeps nothing behind it waiting. */
  async *#due(tier: Tier): AsyncGenerator<readonly SandboxRecord[], void, undefined> {
    const { store, clock, driver, tiers } = this.#deps;
    const since = new Date(clock.now().getTime() - this.#retention(tier));
    if (tier === "warm" && tiers?.snapshots === undefined) return;
    const ownDestination = tier === "warm" && tiers?.snapshots?.hasOwnPlace !== true;
    for (let after: SandboxRecord | undefined; ; ) {
      const page = await store.sandboxes.dueForDemotion({ tier, since, ownDestination, after, limit: PAGE });
      // Another driver's are for the process that uses it.
      yield page.filter((record) => record.driver === driver.name);
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  #retention(tier: Tier): number {
    const { hotMs, warmMs, coldMs } = this.#retentions;
    return { hot: hotMs, warm: warmMs, cold: coldMs, gone: 0 }[tier];
  }

  async #sayWhoStays(): Promise<void> {
    const { store, clock, logger, tiers } = this.#deps;
    if (tiers?.snapshots?.hasOwnPlace === true) return;
    const since = new Date(clock.now().getTime() - this.#retentions.warmMs);
    const [first] = await store.sandboxes.dueForDemotion({ tier: "warm", since, limit: 1 });
    if (first === undefined) return;
    const text = "Sandboxes without a destination of their own stay warm: no place for snapshots is set";
    logger.info({ event: "tier.demote", sandboxId: first.id }, text);
  }
}

function nothing(): Findings {
  return { warmed: [], cooled: [], removed: [], failed: [] };
}
