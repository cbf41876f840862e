import type { Reaper, ReapReport } from "@aido/sdk";
import { isAidoError, toAidoError } from "@aido/sdk/protocol";
import { TOUCH_SLACK_MS } from "../activity/activity.ts";
import { atOnce } from "../at-once.ts";
import { type ClockJumps, DOUBT_MS } from "../clock-jumps.ts";
import type { Logger } from "../logger.ts";
import type { SandboxService } from "../sandbox/sandbox-service.ts";
import { SlowOwners } from "../snapshot/slow-owners.ts";
import type { SandboxPatch, SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import { IdleJudge, type IdleJudgeDeps } from "./idle-judge.ts";

export interface ReaperDeps extends IdleJudgeDeps {
  readonly sandboxes: Pick<SandboxService, "stop" | "expireOne">;
  readonly logger: Logger;
  /**
   * Uploads what the sandbox holds, before it is stopped as idle; when that is wanted. It must not count as a use. What it
   * answers with is written down together with the end, if that follows.
   */
  readonly snapshot?:
    | ((record: SandboxRecord, signal?: AbortSignal) => Promise<SandboxPatch | undefined>)
    | undefined;
  readonly jumps: ClockJumps;
}

type Options = NonNullable<Parameters<Reaper["reap"]>[0]>;
interface Look {
  readonly cutoff: Date;
  readonly slow: SlowOwners;
  readonly findings: Findings;
  readonly signal: AbortSignal | undefined;
}
type Findings = { [Key in keyof ReapReport]: ReapReport[Key][number][] };

/** Sandboxes that are read from the store together; what is due may be any number. */
const PAGE = 500;
const ENDS_AT_ONCE = 8;
const DRY_RUN_MOST = 10_000;
/** An idle sandbox is not kept running longer than this by an upload. */
const SNAPSHOT_LIMIT_MS = 5 * 60_000;

/** Costs what is due, not what exists. Two at once, in one process or in several, end each sandbox once. */
export class SandboxReaper implements Reaper {
  readonly #deps: ReaperDeps;
  readonly #judge: IdleJudge;
  #reaping: Promise<ReapReport> | undefined;
  #knownJump: number | undefined;

  constructor(deps: ReaperDeps) {
    this.#deps = deps;
    this.#judge = new IdleJudge(deps);
  }

  reap(options: Options = {}): Promise<ReapReport> {
    if (options.dryRun === true) return this.#look(options.signal);
    this.#reaping ??= this.#reap(options.signal).finally(() => {
      this.#reaping = undefined;
    });
    return this.#reaping;
  }

  async #look(signal: AbortSignal | undefined): Promise<ReapReport> {
    const { store, clock, jumps } = this.#deps;
    if (jumps.last() !== this.#knownJump) return { expired: [], idle: [], busy: [], failed: [] };
    const isDoubtful = jumps.within(DOUBT_MS);
    const expired = isDoubtful ? [] : this.#own(await store.sandboxes.due(clock.now(), DRY_RUN_MOST));
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
    const { store, clock, jumps, logger } = this.#deps;
    const findings: Findings = { idle: [], expired: [], busy: [], failed: [] };
    const jump = jumps.last();
    if (jump !== this.#knownJump) {
      logger.warn(
        { event: "clock.set", forMs: DOUBT_MS },
        "The clock was set: nothing is removed for its age",
      );
      // Nobody knows any more how long anything was unused: it counts from here.
      await store.sandboxes.touchAll(clock.now());
      this.#knownJump = jump;
      return findings;
    }
    if (!jumps.within(DOUBT_MS)) {
      await this.#inPages(
        (limit) => store.sandboxes.due(clock.now(), limit),
        (page) => this.#expire(page, findings, signal),
      );
    }
    const look: Look = { cutoff: this.#cutoff(), slow: new SlowOwners(), findings, signal };
    await this.#inPages(
      (limit) => store.sandboxes.idleSince(look.cutoff, limit),
      (page) => this.#stopIdle(page, look),
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
        const isOver = await this.#deps.sandboxes.expireOne(record);
        findings[isOver ? "expired" : "busy"].push(record.id);
      }),
    );
  }

  async #stopIdle(page: readonly SandboxRecord[], look: Look): Promise<void> {
    const { cutoff, findings, signal } = look;
    const verdicts = await this.#judge.judge(page, cutoff, signal);
    const stop = (record: SandboxRecord) =>
      this.#each(record, findings, signal, async () => {
        const verdict = verdicts.get(record.id);
        if (verdict?.isIdle === false) {
          await this.#deps.store.sandboxes.touch([record.id], verdict.usedAt);
          findings.busy.push(record.id);
          return;
        }
        const isStopped = await this.#stop(record, look);
        findings[isStopped ? "idle" : "busy"].push(record.id);
      });
    // Uploads to places that users have named go beside the others and keep none of them waiting.
    const isTheirs = (record: SandboxRecord) => record.snapshotDestination !== undefined;
    const [theirs, ours] = [page.filter(isTheirs), page.filter((record) => !isTheirs(record))];
    await Promise.all([atOnce(ENDS_AT_ONCE / 2, theirs, stop), atOnce(ENDS_AT_ONCE, ours, stop)]);
  }

  async #stop(record: SandboxRecord, look: Look): Promise<boolean> {
    const { cutoff, signal } = look;
    const patch = await this.#keep(record, look);
    const unusedMs = this.#deps.clock.now().getTime() - record.lastActivityAt.getTime();
    const stopped = await this.#deps.sandboxes.stop(record.id, {
      reason: "idle",
      detail: { unusedMs, idleTimeoutMs: record.idleTimeoutMs },
      counts: { reaped_idle: 1 },
      ...(patch && { patch }),
      // Somebody may have come back since it was looked at.
      onlyIf: async (now) => !(await this.#judge.isAsked(now, cutoff)),
      ...(signal && { signal }),
    });
    return stopped.state !== "running";
  }

  /** Its files stay when it is stopped, so a snapshot that fails is said and loses nothing. */
  async #keep(record: SandboxRecord, { slow, signal }: Look): Promise<SandboxPatch | undefined> {
    const { snapshot, clock } = this.#deps;
    if (snapshot === undefined || slow.has(record)) return undefined;
    const limit = { clock, limitMs: SNAPSHOT_LIMIT_MS, what: `The upload of ${record.id}`, signal };
    try {
      return await withTimeLimit(limit, (either) => snapshot(record, either));
    } catch (thrown) {
      signal?.throwIfAborted();
      slow.note(record, thrown);
      const { code, message } = toAidoError(thrown);
      this.#deps.logger.warn(
        { event: "sandbox.snapshot", sandboxId: record.id, code, message },
        "No snapshot",
      );
      return undefined;
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
