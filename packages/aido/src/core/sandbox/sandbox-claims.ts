import { AidoError } from "@aido/sdk/protocol";
import type { Claim, ClaimPurpose } from "../store/store.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** A claim is renewed three times within its life, so one late timer does not lose it. */
const CLAIM_MS = 60_000;
const PATIENCE_MS = 30_000;
const POLL_MS = 50;
const DOING: Readonly<Record<ClaimPurpose, string>> = {
  create: "created",
  launch: "started",
  stop: "stopped",
  idle: "stopped",
  demote: "put away",
  destroy: "destroyed",
  expire: "destroyed",
  collect: "destroyed",
};
/** Nobody takes the claim from one who removes the sandbox. */
const REMOVALS: ReadonlySet<ClaimPurpose> = new Set(["destroy", "expire", "collect"]);

export type SandboxClaimsDeps = Pick<SandboxDeps, "store" | "clock" | "jumps" | "processes">;

/** Lets one process at a time change a sandbox in several steps. */
export class SandboxClaims {
  readonly #deps: SandboxClaimsDeps;

  /** Of the whole process: no two claims of it have the same holder. */
  static #count = 0;
  /** The holders that are at work in this process. */
  static readonly #atWork = new Set<string>();

  constructor(deps: SandboxClaimsDeps) {
    this.#deps = deps;
  }

  /** Raises CONTAINER_BUSY when a living process holds it. The signal handed to `work` says that it was taken away. */
  async hold<T>(
    sandboxId: string,
    purpose: ClaimPurpose,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const claim = this.#claim(sandboxId, purpose);
    const inTheWay = await this.#take(claim);
    if (inTheWay !== undefined) throw busy(inTheWay);
    return await this.#keep(claim, work);
  }

  /** As `hold`, but gives one who puts the sandbox away time to finish. */
  async holdAfterDemotion<T>(
    sandboxId: string,
    purpose: ClaimPurpose,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const held = await this.#deps.store.claims.get(sandboxId);
    if (held?.purpose !== "demote") return await this.hold(sandboxId, purpose, work);
    return await this.holdPatiently(sandboxId, purpose, work);
  }

  /** As `hold`, but gives the one who holds it time to finish. */
  async holdPatiently<T>(
    sandboxId: string,
    purpose: ClaimPurpose,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const deadline = this.#deps.clock.now().getTime() + PATIENCE_MS;
    for (;;) {
      const claim = this.#claim(sandboxId, purpose);
      const inTheWay = await this.#take(claim);
      if (inTheWay === undefined) return await this.#keep(claim, work);
      if (this.#deps.clock.now().getTime() >= deadline) throw busy(inTheWay);
      await this.#deps.clock.sleep(POLL_MS);
    }
  }

  /** As `hold`, but takes the claim from whoever has it; false without work when another destroys it already. */
  async seize(sandboxId: string, purpose: "destroy" | "expire", work: () => Promise<void>): Promise<boolean> {
    const claim = this.#claim(sandboxId, purpose);
    const inTheWay = await this.#take(claim);
    if (inTheWay !== undefined && REMOVALS.has(inTheWay.purpose)) return false;
    if (inTheWay !== undefined && (await this.#take(claim, inTheWay)) !== undefined) return false;
    await this.#keep(claim, work);
    return true;
  }

  /** Claims that nobody works on any more: what they stand for was left half done. */
  async abandoned(): Promise<readonly Claim[]> {
    return (await this.#deps.store.claims.list()).filter((claim) => this.isAbandoned(claim));
  }

  /** The time on a claim counts only where nothing better is known: a clock that is set ends nobody's work. */
  isAbandoned({ holder, until }: Claim): boolean {
    const { processes, clock, jumps } = this.#deps;
    if (holder.startsWith(`${processes.self}#`)) return !SandboxClaims.#atWork.has(holder);
    if (processes.isDead(holder)) return true;
    if (processes.isAlive(holder) || jumps.within(CLAIM_MS)) return false;
    return until <= clock.now();
  }

  #claim(sandboxId: string, purpose: ClaimPurpose): Claim {
    SandboxClaims.#count += 1;
    const holder = `${this.#deps.processes.self}#${SandboxClaims.#count}`;
    return { sandboxId, holder, purpose, until: new Date(this.#deps.clock.now().getTime() + CLAIM_MS) };
  }

  async #take(claim: Claim, from?: Claim): Promise<Claim | undefined> {
    const { store, clock, processes } = this.#deps;
    let held: Claim | undefined = claim;
    SandboxClaims.#atWork.add(claim.holder);
    try {
      held = await store.claims.take(claim, clock.now(), from);
      if (held !== undefined && processes.isDead(held.holder))
        held = await store.claims.take(claim, clock.now(), held);
      return held;
    } finally {
      if (held !== undefined) SandboxClaims.#atWork.delete(claim.holder);
    }
  }

  async #keep<T>(claim: Claim, work: (lost: AbortSignal) => Promise<T>): Promise<T> {
    const done = new AbortController();
    const lost = new AbortController();
    const renewing = this.#renew(claim, done.signal, lost);
    try {
      return await work(lost.signal);
    } finally {
      done.abort();
      await renewing;
      await this.#deps.store.claims.release(claim.sandboxId, claim.holder).finally(() => {
        SandboxClaims.#atWork.delete(claim.holder);
      });
    }
  }

  async #renew(claim: Claim, done: AbortSignal, lost: AbortController): Promise<void> {
    const { store, clock } = this.#deps;
    while (!done.aborted) {
      try {
        await clock.sleep(CLAIM_MS / 3, done);
        const until = new Date(clock.now().getTime() + CLAIM_MS);
        if (await store.claims.renew(claim.sandboxId, claim.holder, until)) continue;
      } catch {
        // Either the work is done, or the store is unavailable for a moment and the claim still has time.
        continue;
      }
      lost.abort(
        new AidoError("CANCELLED", `Sandbox ${claim.sandboxId} was taken over by another process`, {
          details: { id: claim.sandboxId },
        }),
      );
      return;
    }
  }
}

export function isStop({ purpose }: Claim): boolean {
  return purpose === "stop" || purpose === "idle";
}

export function busy(claim: Claim): AidoError {
  return new AidoError(
    "CONTAINER_BUSY",
    `Sandbox ${claim.sandboxId} is being ${DOING[claim.purpose]} by another process`,
    {
      hint: "Wait for it to finish and try again.",
      details: { id: claim.sandboxId, purpose: claim.purpose },
    },
  );
}
