import type { WorkerPlan, WorkerUsage } from "../records/worker-record.ts";
import { usedUp } from "./budgets.ts";
import type { HostDecision } from "./worker-end.ts";

/** An adapter keeps its budgets itself and needs a while to put its work away; only then the host does it. */
export const BUDGET_GRACE_MS = 30_000;

export interface WatchedWorker {
  readonly plan: WorkerPlan;
  /** With what its earlier containers used. */
  readonly usage: WorkerUsage;
  readonly seconds: number;
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

  #lookAtBudgets(now: Date, { plan, usage, seconds }: WatchedWorker) {
    const stop = overBudget(plan, usage, seconds);
    if (stop === undefined) return undefined;
    this.#overSince ??= now.getTime();
    return now.getTime() - this.#overSince < BUDGET_GRACE_MS ? undefined : { stop };
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

/** Why it is not to work any more. */
export function overBudget(plan: WorkerPlan, usage: WorkerUsage, seconds: number): HostDecision | undefined {
  const reason = usedUp(plan.agent, usage, seconds);
  return reason === undefined ? undefined : { status: "stopped", reason: `Its budget is used up: ${reason}` };
}

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
