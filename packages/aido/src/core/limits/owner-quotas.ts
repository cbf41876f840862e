import { AidoError, type ResourceLimits } from "@aido/sdk/protocol";
import { OWNER_LABEL } from "../access/owner-label.ts";
import type { SandboxStore } from "../store/store.ts";
import { type Amounts, AtMost, type Bound } from "./at-most.ts";

const THINGS = ["sandboxes", "cpus", "memoryBytes"] as const;
type Thing = (typeof THINGS)[number];

/** The most that one owner may have; 0 means no limit. Processors and memory are those of what is starting or runs. */
export type OwnerLimits = Amounts<Thing>;
export type LimitsOf = (owner: string) => Promise<OwnerLimits>;

interface Asked {
  labels: Readonly<Record<string, string>>;
  limits: Pick<ResourceLimits, "cpus" | "memoryBytes">;
}

const MIB = 1024 * 1024;
/** Sums of tenths are not exact. */
const SLACK = 1e-6;

/** Holds each owner to what it may have. Whoever uses aido in this process has no owner's label, and no limit. */
export class OwnerQuotas {
  readonly #sandboxes: Pick<SandboxStore, "usedBy">;
  readonly #reconcile: () => Promise<void>;
  readonly #limitsOf: LimitsOf | undefined;
  readonly #owners = new Map<string, { bound: AtMost<Thing>; users: number }>();

  constructor(
    sandboxes: Pick<SandboxStore, "usedBy">,
    reconcile: () => Promise<void>,
    limitsOf: LimitsOf | undefined,
  ) {
    this.#sandboxes = sandboxes;
    this.#reconcile = reconcile;
    this.#limitsOf = limitsOf;
  }

  /** Makes one more sandbox, or raises QUOTA_EXCEEDED. */
  create<Made>(asked: Asked, make: () => Promise<Made>): Promise<Made> {
    return this.#within(asked, 1, make);
  }

  /** Starts one that is there, or raises QUOTA_EXCEEDED. */
  start<Made>(asked: Asked, make: () => Promise<Made>): Promise<Made> {
    return this.#within(asked, 0, make);
  }

  async #within<Made>(
    { labels, limits }: Asked,
    sandboxes: number,
    make: () => Promise<Made>,
  ): Promise<Made> {
    const owner = labels[OWNER_LABEL];
    const most = owner === undefined ? undefined : await this.#limitsOf?.(owner);
    if (owner === undefined || most === undefined || THINGS.every((thing) => most[thing] === 0))
      return make();
    const own = this.#owners.get(owner) ?? { bound: new AtMost<Thing>(), users: 0 };
    this.#owners.set(owner, own);
    own.users += 1;
    try {
      const asked = { sandboxes, cpus: limits.cpus, memoryBytes: limits.memoryBytes };
      return await own.bound.make(asked, this.#bound(owner, most), make);
    } finally {
      own.users -= 1;
      if (own.users === 0) this.#owners.delete(owner);
    }
  }

  #bound(owner: string, most: OwnerLimits): Bound<Thing> {
    const refusal: Bound<Thing>["refusal"] = (used, asked) => {
      const thing = THINGS.find(
        (each) => most[each] > 0 && asked[each] > 0 && used[each] + asked[each] > most[each] + SLACK,
      );
      return thing === undefined ? undefined : exceeded(thing, most[thing], used[thing], asked[thing]);
    };
    const used = async (asked: Amounts<Thing>) => {
      const now = await this.#sandboxes.usedBy(owner);
      if (refusal(now, asked) === undefined) return now;
      // Before anybody is sent away: some may have ended unseen.
      await this.#reconcile();
      return await this.#sandboxes.usedBy(owner);
    };
    return { used, refusal };
  }
}

const SHOWN: Readonly<Record<Thing, (amount: number) => string>> = {
  sandboxes: (amount) => `${amount}`,
  cpus: (amount) => `${Number(amount.toFixed(3))}`,
  memoryBytes: (amount) => `${Number((amount / MIB).toFixed(1))} MiB`,
};
const NAMES: Readonly<Record<Thing, string>> = {
  sandboxes: "sandboxes",
  cpus: "processors",
  memoryBytes: "of memory",
};

function exceeded(quota: Thing, limit: number, used: number, asked: number): AidoError {
  const shown = SHOWN[quota];
  const message = `Your quota of ${shown(limit)} ${NAMES[quota]} is not enough: ${shown(used)} in use, ${shown(asked)} asked for`;
  return new AidoError("QUOTA_EXCEEDED", message, {
    hint: `${quota === "sandboxes" ? "Delete" : "Stop or delete"} a sandbox, or ask for a higher quota.`,
    details: { quota, limit, used, asked },
  });
}
