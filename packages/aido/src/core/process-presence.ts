import type { Clock } from "./clock.ts";
import type { ClockJumps } from "./clock-jumps.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import type { LeaseStore } from "./store/store.ts";

/** Whether those who have written their name on a piece of work are still at it. */
export interface Presence {
  /** How this process signs its work. */
  readonly self: string;
  /** To be called before anything is signed. */
  appear(): Promise<void>;
  isGone(holder: string): Promise<boolean>;
}

export interface ProcessPresenceDeps {
  readonly processes: ProcessIdentity;
  readonly leases: LeaseStore;
  readonly clock: Clock;
  readonly jumps: ClockJumps;
}

const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
const KEEP_ENDED_MS = 24 * 60 * 60_000;

/**
 * The kernel tells of processes beside this one. Of all others (from before a reboot, in another container, on another
 * machine) a lease does, which each process that has signed something renews for as long as it lives.
 */
export class ProcessPresence implements Presence {
  readonly self: string;
  readonly #deps: ProcessPresenceDeps;
  readonly #closing = new AbortController();
  #appeared: Promise<void> | undefined;
  #renewing: Promise<void> | undefined;

  constructor(deps: ProcessPresenceDeps) {
    this.#deps = deps;
    this.self = deps.processes.self;
  }

  appear(): Promise<void> {
    this.#appeared ??= this.#appear().catch((thrown: unknown) => {
      this.#appeared = undefined;
      throw thrown;
    });
    return this.#appeared;
  }

  async isGone(holder: string): Promise<boolean> {
    const { processes, leases, clock, jumps } = this.#deps;
    if (processes.isAlive(holder)) return false;
    if (processes.isDead(holder)) return true;
    // When the clock was set every lease looks ended; whoever lives has renewed its own one lease later.
    if (jumps.within(LEASE_MS)) return false;
    const leftMs = ((await leases.endOf(leaseOf(holder)))?.getTime() ?? 0) - clock.now().getTime();
    // One that ends later than any that is taken now was taken before the clock went back.
    return leftMs <= 0 || leftMs > 2 * LEASE_MS;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#appeared?.catch(() => undefined);
    await this.#renewing;
    if (this.#appeared === undefined) return;
    // One that cannot be given back ends by itself.
    await this.#deps.leases.release(leaseOf(this.self), this.self).catch(() => undefined);
  }

  async #appear(): Promise<void> {
    const { leases, clock } = this.#deps;
    await leases.forgetEnded(new Date(clock.now().getTime() - KEEP_ENDED_MS));
    await this.#take();
    this.#renewing ??= this.#renew();
  }

  async #renew(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await this.#deps.clock.sleep(RENEW_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      // A store that does not answer is asked again at the next turn; the lease outlasts two of them.
      await this.#take().catch(() => undefined);
    }
  }

  async #take(): Promise<void> {
    const { leases, clock } = this.#deps;
    const now = clock.now();
    await leases.take(leaseOf(this.self), this.self, new Date(now.getTime() + LEASE_MS), now);
  }
}

function leaseOf(holder: string): string {
  return `process.${holder}`;
}
