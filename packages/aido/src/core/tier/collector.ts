import type { CollectReport } from "@aido/sdk";
import { isAidoError, type Tier, toAidoError } from "@aido/sdk/protocol";
import { ownerOf } from "../access/owner-label.ts";
import { atOnce } from "../at-once.ts";
import { DOUBT_MS } from "../clock-jumps.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import { SlowOwners } from "../snapshot/slow-owners.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { Lane, TierGc } from "./deferred-gc.ts";
import { Demotion } from "./demotion.ts";

/** How long a stopped sandbox stays in each tier. */
export interface Retentions {
  readonly hotMs: number;
  readonly warmMs: number;
  readonly coldMs: number;
}

type Options = NonNullable<Parameters<TierGc["collect"]>[0]>;
type Findings = { [Key in keyof CollectReport]: CollectReport[Key][number][] };

/** Read from the store together; what is due may be any number. */
const PAGE = 100;
const STEPS_AT_ONCE: Readonly<Record<Lane, number>> = { ours: 4, theirs: 2 };
const LANES = ["ours", "theirs"] as const;
/** The last first: whatever is moved now waits for its next step until the next collection. */
const ORDER = ["gone", "cold", "warm", "hot"] as const;
const MOVED = { hot: "warmed", warm: "cooled", cold: "removed", gone: "removed" } as const;

/** Costs what is due, not what exists. Two at once, in one process or in several, move each sandbox once. */
export class TierCollector implements TierGc {
  readonly #deps: SandboxDeps;
  readonly #retentions: Retentions;
  readonly #demotion: Demotion;
  readonly #collecting = new Map<Lane, Promise<CollectReport>>();
  #sweeping: Promise<void> | undefined;

  constructor(deps: SandboxDeps, retentions: Retentions) {
    this.#deps = deps;
    this.#retentions = retentions;
    this.#demotion = new Demotion(deps);
  }

  async collect({ dryRun, only, signal }: Options = {}): Promise<CollectReport> {
    const lanes = only === undefined ? LANES : [only];
    const reports = lanes.map((lane) => {
      if (dryRun === true) return this.#look(lane);
      const collecting = this.#collecting.get(lane) ?? this.#collect(lane, signal);
      this.#collecting.set(lane, collecting);
      return collecting.finally(() => this.#collecting.delete(lane));
    });
    const all = nothing();
    for (const report of await Promise.all(reports)) {
      for (const kind of ["warmed", "cooled", "removed"] as const) all[kind].push(...report[kind]);
      all.failed.push(...report.failed);
    }
    return all;
  }

  async #look(lane: Lane): Promise<CollectReport> {
    const findings = nothing();
    for (const tier of ORDER) {
      for await (const page of this.#due(tier, lane)) findings[MOVED[tier]].push(...page.map(({ id }) => id));
    }
    return findings;
  }

  async #collect(lane: Lane, signal = new AbortController().signal): Promise<CollectReport> {
    const findings = nothing();
    const slow = new SlowOwners();
    await this.#swept();
    if (lane === "ours") await this.#sayWhoStays();
    for (const tier of ORDER) {
      for await (const page of this.#due(tier, lane)) {
        // One at a time of each owner's that go to places of their own.
        const queues = lane === "ours" ? page.map((record) => [record]) : byOwner(page);
        await atOnce(STEPS_AT_ONCE[lane], queues, async (queue) => {
          for (const record of queue) {
            if (!slow.has(record)) await this.#each(record, { tier, findings, slow, signal });
          }
        });
      }
    }
    return findings;
  }

  /** Once, before either lane: it looks at the same sandboxes. */
  #swept(): Promise<void> {
    this.#sweeping ??= this.#demotion.sweep().catch((thrown: unknown) => {
      this.#sweeping = undefined;
      throw thrown;
    });
    return this.#sweeping;
  }

  /** One that cannot be moved keeps no other from it. */
  async #each(
    record: SandboxRecord,
    {
      tier,
      findings,
      slow,
      signal,
    }: { tier: Tier; findings: Findings; slow: SlowOwners; signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted();
    try {
      if (await this.#demotion.demote(record, signal)) findings[MOVED[tier]].push(record.id);
    } catch (thrown) {
      signal.throwIfAborted();
      // Somebody resumes or destroys it: nothing to collect any more.
      if (isAidoError(thrown, "CONTAINER_BUSY")) return;
      slow.note(record, thrown);
      const { code, message } = toAidoError(thrown);
      findings.failed.push({ id: record.id, code, message });
      this.#deps.logger.warn({ event: "tier.demote", sandboxId: record.id, tier, code, message }, "It stays");
    }
  }

  /** Page after page, each from the end of the one before: what cannot be moved keeps nothing behind it waiting. */
  async *#due(tier: Tier, lane: Lane): AsyncGenerator<readonly SandboxRecord[], void, undefined> {
    const { store, clock, driver, tiers, jumps } = this.#deps;
    // What is removed cannot be had back, and only the time of day says that it is time.
    if (MOVED[tier] === "removed" && jumps.within(DOUBT_MS)) return;
    const since = new Date(clock.now().getTime() - this.#retention(tier));
    const isUpload = tier === "warm";
    const ownDestination = lane === "theirs";
    if (ownDestination && (!isUpload || tiers?.snapshots === undefined)) return;
    if (!ownDestination && isUpload && tiers?.snapshots?.hasOwnPlace !== true) return;
    for (let after: SandboxRecord | undefined; ; ) {
      const page = await store.sandboxes.dueForDemotion({ tier, since, ownDestination, after, limit: PAGE });
      // Another driver's are for the process that uses it, another lane's for that.
      const isOurs = (record: SandboxRecord) => ownDestination || record.snapshotDestination === undefined;
      yield page.filter((record) => record.driver === driver.name && (!isUpload || isOurs(record)));
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

function byOwner(records: readonly SandboxRecord[]): readonly SandboxRecord[][] {
  const queues = new Map<string, SandboxRecord[]>();
  for (const record of records) {
    const owner = ownerOf(record.labels);
    queues.set(owner, [...(queues.get(owner) ?? []), record]);
  }
  return [...queues.values()];
}

function nothing(): Findings {
  return { warmed: [], cooled: [], removed: [], failed: [] };
}
