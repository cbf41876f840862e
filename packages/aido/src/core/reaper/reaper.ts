import type { Reaper, ReapReport } from "@aido/sdk";
import { isAidoError, toAidoError } from "@aido/sdk/protocol";
import { TOUCH_SLACK_MS } from "../activity/activity.ts";
import { atOnce } from "../at-once.ts";
import type { Logger } from "../logger.ts";
import type { SandboxService } from "../sandbox/sandbox-service.ts";
import type { SandboxRecord } from "../store/store.ts";
import { ClockJumps } from "./clock-jumps.ts";
import { IdleJudge, type IdleJudgeDeps } from "./idle-judge.ts";

export interface ReaperDeps extends IdleJudgeDeps {
  readonly sandboxes: Pick<SandboxService, "stop" | "expireOne">;
  readonly logger: Logger;
  /** Uploads what the sandbox holds, before it is stopped as idle; when that is wanted. It must not count as a use. */
  readonly snapshot?: ((record: SandboxRecord, signal?: AbortSignal) => Promise<unknown>) | undefined;
  /** Milliseconds that pass whatever the time of day does. */
  readonly passedMs?: (() => number) | undefined;
}

type Options = NonNullable<Parameters<Reaper["reap"]>[0]>;
type Findings = { [Key in keyof ReapReport]: ReapReport[Key][number][] };

/** Sandboxes that are read from the store together; what is due may be any number. */
const PAGE = 500;
const ENDS_AT_ONCE = 8;
const DRY_RUN_MOST = 10_000;

/** Costs what is due, not what exists. Two at once, in one process or in several, end each sandbox once. */
export class SandboxReaper implements Reaper {
  readonly #deps: ReaperDeps;
  readonly #judge: IdleJudge;
  readonly #jumps: ClockJumps;
  #reaping: Promise<ReapReport> | undefined;

  constructor(deps: ReaperDeps) {
    this.#deps = deps;
    this.#judge = new IdleJudge(deps);
    this.#jumps = new ClockJumps(deps.clock, deps.passedMs ?? (() => performance.now()));
  }

  reap(options: Options = {}): Promise<ReapReport> {
    if (options.dryRun === true) return this.#look(options.signal);
    this.#reaping ??= this.#reap(options.signal).finally(() => {
      this.#reaping = undefined;
    });
    return this.#reaping;
  }

  async #look(signal: AbortSignal | undefined): Promise<ReapReport> {
    const { store, clock } = this.#deps;
    const expired = this.#own(await store.sandboxes.due(clock.now(), DRY_RUN_MOST));
    const cutoff = this.#cutoff();
    const unused = this.#own(await store.sandboxes.idleSince(cutoff, DRY_RUN_MOST));
    const gone = new Set(expired.map(({ id }) => id));
    const candidates = unused.filter(({ id }) => !gone.has(id));
    const verdicts = await this.#judge.judge(candidates, cutoff, signal);
    const ids = (isIdle: boolean) =>
      candidates.filter(({ id }) => verdicts.get(id)?.isIdle === isIdle).map(({ id }) => id);
    return { expired: [...gone], idle: ids(true), busy: ids(false), failed: [] };
  }

  async #reap(signal: AbortSignal | undefined): Promise<ReapReport> {
    const { store, clock } = this.#deps;
    const findings: Findings = { idle: [], expired: [], busy: [], failed: [] };
    await this.#inPages(
      (limit) => store.sandboxes.due(clock.now(), limit),
      (page) => this.#expire(page, findings, signal),
    );
    if (this.#jumps.hasJumped()) {
      // Nobody knows any more how long anything was unused: it counts from here.
      await store.sandboxes.touchAll(clock.now());
      return findings;
    }
    const cutoff = this.#cutoff();
    await this.#inPages(
      (limit) => store.sandboxes.idleSince(cutoff, limit),
      (page) => this.#stopIdle(page, cutoff, findings, signal),
    );
    return findings;
  }

  /** What a page's work leaves due is not looked at again in this look, and keeps nothing behind it waiting. */
  async #inPages(
    read: (limit: number) => Promise<readonly SandboxRecord[]>,
    work: (page: readonly SandboxRecord[]) => Promise<void>,
  ): Promise<void> {
    const seen = new Set<string>();
    for (let stuck = 0; ; ) {
      const limit = PAGE + stuck;
      const found = await read(limit);
      const page = found.filter(({ id }) => !seen.has(id)).slice(0, PAGE);
      stuck = found.filter(({ id }) => seen.has(id)).length;
      if (page.length === 0 && found.length < limit) return;
      for (const { id } of page) seen.add(id);
      await work(this.#own(page));
    }
  }

  async #expire(page: readonly SandboxRecord[], findings: Findings, signal?: AbortSignal): Promise<void> {
    await atOnce(ENDS_AT_ONCE, page, (record) =>
      this.#each(record, findings, signal, async () => {
        await this.#deps.sandboxes.expireOne(record);
        findings.expired.push(record.id);
      }),
    );
  }

  async #stopIdle(
    page: readonly SandboxRecord[],
    cutoff: Date,
    findings: Findings,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const verdicts = await this.#judge.judge(page, cutoff, signal);
    await atOnce(ENDS_AT_ONCE, page, (record) =>
      this.#each(record, findings, signal, async () => {
        const verdict = verdicts.get(record.id);
        if (verdict?.isIdle === false) {
          await this.#deps.store.sandboxes.touch([record.id], verdict.usedAt);
          findings.busy.push(record.id);
          return;
        }
        const isStopped = await this.#stop(record, cutoff, signal);
        findings[isStopped ? "idle" : "busy"].push(record.id);
      }),
    );
  }

  async #stop(record: SandboxRecord, cutoff: Date, signal: AbortSignal | undefined): Promise<boolean> {
    await this.#keep(record, signal);
    const unusedMs = this.#deps.clock.now().getTime() - record.lastActivityAt.getTime();
    const stopped = await this.#deps.sandboxes.stop(record.id, {
      reason: "idle",
      detail: { unusedMs, idleTimeoutMs: record.idleTimeoutMs },
      counts: { reaped_idle: 1 },
      // Somebody may have come back since it was looked at.
      onlyIf: async (now) => !(await this.#judge.isAsked(now, cutoff)),
      ...(signal && { signal }),
    });
    return stopped.state !== "running";
  }

  /** Its files stay when it is stopped, so a snapshot that fails is said and loses nothing. */
  async #keep(record: SandboxRecord, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#deps.snapshot?.(record, signal);
    } catch (thrown) {
      signal?.throwIfAborted();
      const { code, message } = toAidoError(thrown);
      this.#deps.logger.warn(
        { event: "sandbox.snapshot", sandboxId: record.id, code, message },
        "No snapshot",
      );
    }
  }

  /** One that cannot be ended keeps no other from its end. */
  async #each(
    { id }: SandboxRecord,
    findings: Findings,
    signal: AbortSignal | undefined,
    work: () => Promise<void>,
  ): Promise<void> {
    signal?.throwIfAborted();
    try {
      await work();
    } catch (thrown) {
      signal?.throwIfAborted();
      const { code, message } = toAidoError(thrown);
      if (isAidoError(thrown, "CONTAINER_BUSY")) findings.busy.push(id);
      else findings.failed.push({ id, code, message });
    }
  }

  /** A use may be written down some seconds late. */
  #cutoff(): Date {
    return new Date(this.#deps.clock.now().getTime() - TOUCH_SLACK_MS);
  }

  /** Another driver's are for the process that uses it. */
  #own(records: readonly SandboxRecord[]): readonly SandboxRecord[] {
    return records.filter(({ driver }) => driver === this.#deps.driver.name);
  }
}
