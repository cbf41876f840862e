import type { WorkerPlan } from "../records/worker-record.ts";
import { usedUp } from "./budgets.ts";
import type { WorkerUsage } from "./swarm-event.ts";
import type { HostDecision } from "./worker-end.ts";

/** An adapter keeps its budgets itself and needs a while to put its work away; only then the host does it. */
export const BUDGET_GRACE_MS = 30_000;

export interface WatchedWorker {
  readonly plan: WorkerPlan;
  readonly usage: WorkerUsage;
  readonly startedAt: Date;
  readonly heardAt: Date;
}

/** Watches what a worker must not go beyond. */
export class WorkerLimitsWatch {
  #overSince: number | undefined;
  #warnedAt: number | undefined;

  /** What to do now, if anything. */
  look(now: Date, worker: WatchedWorker): { warning: string } | { stop: HostDecision } | undefined {
    return this.#lookAtBudgets(now, worker) ?? this.#lookAtSilence(now, worker);
  }

  #lookAtBudgets(now: Date, { plan, usage, startedAt }: WatchedWorker) {
    const seconds = (now.getTime() - startedAt.getTime()) / 1000;
    const reason = usedUp(plan.agent, usage, seconds);
    if (reason === undefined) return undefined;
    this.#overSince ??= now.getTime();
    if (now.getTime() - this.#overSince < BUDGET_GRACE_MS) return undefined;
    return { stop: { status: "stopped" as const, reason: `Its budget is used up: ${reason}` } };
  }

  #lookAtSilence(now: Date, { plan: { silenceMs }, heardAt }: WatchedWorker) {
    if (silenceMs === 0) return undefined;
    const silence = now.getTime() - heardAt.getTime();
    if (silence >= silenceMs) {
      return { stop: { status: "failed" as const, reason: `It said nothing for ${seconds(silenceMs)}` } };
    }
    if (silence < silenceMs / 2 || this.#warnedAt === heardAt.getTime()) return undefined;
    this.#warnedAt = heardAt.getTime();
    const left = seconds(silenceMs - silence);
    return {
      warning: `It has said nothing for ${seconds(silence)}; it is stopped in ${left} unless it does`,
    };
  }
}

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
