import type { Activity } from "../activity/activity.ts";
import { atOnce } from "../at-once.ts";
import type { Clock } from "../clock.ts";
import type { Driver } from "../driver/driver.ts";
import type { ExecRecord, SandboxRecord, Store } from "../store/store.ts";

export interface IdleJudgeDeps {
  readonly store: Store;
  readonly driver: Driver;
  readonly activity: Activity;
  readonly clock: Clock;
  /** Of one sandbox, those that run now. */
  readonly runningExecs: (record: SandboxRecord) => Promise<readonly ExecRecord[]>;
  /** A sandbox that uses more processors is at work; 0 does not look. */
  readonly busyCpus: number;
}

/** Idle, or in use: at work now, or used last at the time given. */
export type Verdict = { isIdle: true } | { isIdle: false; usedAt: Date };

/** Between the two looks at what processors do. */
const CPU_WINDOW_MS = 1000;
const LOOKS_AT_ONCE = 16;
const IDLE: Verdict = { isIdle: true };

/** Whether a sandbox that nobody has asked for anything is at work all the same. */
export class IdleJudge {
  readonly #deps: IdleJudgeDeps;

  constructor(deps: IdleJudgeDeps) {
    this.#deps = deps;
  }

  /** Of sandboxes that were due at `cutoff`. The processors of all are looked at together, within a second. */
  async judge(
    records: readonly SandboxRecord[],
    cutoff: Date,
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, Verdict>> {
    const verdicts = new Map<string, Verdict>();
    await atOnce(LOOKS_AT_ONCE, records, async (record) => {
      verdicts.set(record.id, await this.#asked(record, cutoff));
    });
    const idle = records.filter(({ id }) => verdicts.get(id)?.isIdle === true);
    for (const id of await this.#computing(idle, signal)) {
      verdicts.set(id, { isIdle: false, usedAt: this.#deps.clock.now() });
    }
    return verdicts;
  }

  /** The same without the processors, for a last look. */
  async isAsked(record: SandboxRecord, cutoff: Date): Promise<boolean> {
    const isDue = record.lastActivityAt.getTime() + record.idleTimeoutMs <= cutoff.getTime();
    return !isDue || !(await this.#asked(record, cutoff)).isIdle;
  }

  async #asked(record: SandboxRecord, cutoff: Date): Promise<Verdict> {
    const { activity, clock, runningExecs, store } = this.#deps;
    const isUsed = activity.isBusy(record.id) || (await runningExecs(record)).length > 0;
    if (isUsed) return { isIdle: false, usedAt: clock.now() };
    // It is idle since its last command ended, not since that began.
    const endedAt = await store.execs.lastEnd(record.id);
    const isRecent = endedAt !== undefined && endedAt.getTime() + record.idleTimeoutMs > cutoff.getTime();
    return isRecent ? { isIdle: false, usedAt: endedAt } : IDLE;
  }

  async #computing(records: readonly SandboxRecord[], signal?: AbortSignal): Promise<readonly string[]> {
    const { busyCpus, clock } = this.#deps;
    if (busyCpus === 0 || records.length === 0) return [];
    const before = await this.#cpuTimes(records);
    await clock.sleep(CPU_WINDOW_MS, signal);
    const after = await this.#cpuTimes(records);
    return [...after].flatMap(([id, { cpuMs, atMs }]) => {
      const first = before.get(id);
      if (first === undefined) return [];
      const elapsedMs = atMs - first.atMs;
      // Without a window that can be trusted nobody is called idle.
      return elapsedMs <= 0 || (cpuMs - first.cpuMs) / elapsedMs > busyCpus ? [id] : [];
    });
  }

  async #cpuTimes(records: readonly SandboxRecord[]): Promise<Map<string, { cpuMs: number; atMs: number }>> {
    const { driver, clock } = this.#deps;
    const times = new Map<string, { cpuMs: number; atMs: number }>();
    await atOnce(LOOKS_AT_ONCE, records, async ({ id }) => {
      // One whose container is gone or does not answer does no work; stopping it says what is wrong with it.
      const usage = await driver.usage(id).catch(() => undefined);
      if (usage !== undefined) times.set(id, { cpuMs: usage.cpuMs, atMs: clock.now().getTime() });
    });
    return times;
  }
}
