import type { WorkerUsage } from "../records/worker-record.ts";

/** Undefined is no limit. */
export interface Budgets {
  readonly maxTurns?: number | undefined;
  /** Read and written together. */
  readonly maxTokens?: number | undefined;
  readonly maxSeconds?: number | undefined;
}

/** What is left of each when so much of it is used; at least one, where `usedUp` finds some left. */
export function leftOf(budgets: Budgets, usage: WorkerUsage, seconds: number): Budgets {
  const { maxTurns, maxTokens, maxSeconds } = budgets;
  const left = (most: number | undefined, used: number) => (most === undefined ? undefined : most - used);
  return {
    maxTurns: left(maxTurns, usage.turns),
    maxTokens: left(maxTokens, usage.inputTokens + usage.outputTokens),
    maxSeconds: left(maxSeconds, seconds),
  };
}

/** Which budget is used up, in words; undefined while there is some left of each. */
export function usedUp(budgets: Budgets, usage: WorkerUsage, seconds: number): string | undefined {
  const { maxTurns, maxTokens, maxSeconds } = budgets;
  if (maxTurns !== undefined && usage.turns >= maxTurns)
    return `${usage.turns} of ${maxTurns} turns are used`;
  const tokens = usage.inputTokens + usage.outputTokens;
  if (maxTokens !== undefined && tokens >= maxTokens) return `${tokens} of ${maxTokens} tokens are used`;
  if (maxSeconds !== undefined && seconds >= maxSeconds) return `its time of ${maxSeconds} s is over`;
  return undefined;
}
