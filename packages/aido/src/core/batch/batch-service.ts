import { randomUUID } from "node:crypto";
import {
  AidoError,
  type BatchAggregate,
  type BatchInfo,
  type BatchItem,
  type BatchKind,
  toAidoError,
} from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Counts } from "../metrics/counters.ts";
import type { Presence } from "../process-presence.ts";
import type { Store } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import { missingPart, notNeeded, toFailure } from "./batch-failures.ts";
import type { BatchRecord } from "./batch-store.ts";
import { inOrder } from "./in-order.ts";

/** How many parts of a parallel batch are at work at once. */
const PARALLEL = 10;
const POLL_MS = 200;
const FORGET_AT_ONCE = 100;
const LISTED = 1000;

export interface BatchDeps {
  readonly store: Pick<Store, "batches">;
  readonly clock: Clock;
  readonly presence: Presence;
  readonly logger: Logger;
  /** How long results are kept. */
  readonly ttlMs: number;
}

/** Who asks; an operator sees everybody's batches. */
export interface BatchCaller {
  readonly owner: string;
  readonly isOperator: boolean;
}

export interface BatchPlan<Result extends object> {
  kind: BatchKind;
  /** Empty when it is to be chosen. */
  id: string;
  count: number;
  parallel: boolean;
  work: (position: number, signal: AbortSignal, batchId: string) => Promise<Result>;
  /** Said with what became of a part, also when it has failed. */
  about?: ((position: number) => { sidecarUrl?: string }) | undefined;
  /** What is written down of a result: no secrets. */
  kept?: ((result: Result) => object) | undefined;
  counts?: ((result: Result) => Counts) | undefined;
  /** Looks at a result as it comes; true means that the others are not needed any more. */
  suffices?: ((result: Result) => boolean) | undefined;
  aggregate?: ((items: readonly BatchItem<Result>[]) => BatchAggregate | undefined) | undefined;
}

export interface BatchOutcome<Result> {
  batchId: string;
  items: readonly BatchItem<Result>[];
  aggregate: BatchAggregate | undefined;
}

interface Running {
  readonly ended: Promise<BatchOutcome<object>>;
  readonly stop: AbortController;
}

/**
 * Runs the same work many times. Each part is written down when it has ended, so that what a batch came to outlives
 * its server; no part is ever begun twice. A batch belongs to aido, not to a connection: who stops waiting can collect it.
 */
export class BatchService {
  readonly #deps: BatchDeps;
  readonly #running = new Map<string, Running>();

  constructor(deps: BatchDeps) {
    this.#deps = deps;
  }

  /** The same id again gives what became of the first. An abort stops waiting, not the batch. */
  async run<Result extends object>(
    plan: BatchPlan<Result>,
    caller: BatchCaller,
    signal: AbortSignal,
  ): Promise<BatchOutcome<Result>> {
    const { store, clock, presence, ttlMs } = this.#deps;
    const id = plan.id === "" ? `batch-${randomUUID()}` : plan.id;
    const now = clock.now();
    await store.batches.removeExpired(now, FORGET_AT_ONCE);
    const record: BatchRecord = {
      id,
      kind: plan.kind,
      owner: caller.owner,
      holder: presence.self,
      state: "running",
      count: plan.count,
      aggregate: undefined,
      createdAt: now,
      endedAt: undefined,
      expiresAt: new Date(now.getTime() + ttlMs),
    };
    await presence.appear();
    if (!(await store.batches.insert(record))) return await this.#known(record, caller, signal);
    const stop = new AbortController();
    const ended = this.#run(record, plan, stop).finally(() => this.#running.delete(id));
    ended.catch(() => undefined);
    this.#running.set(id, { ended, stop });
    return await orAborted(ended, signal);
  }

  async get(id: string, caller: BatchCaller): Promise<BatchInfo> {
    return await this.#info(await this.#find(id, caller));
  }

  /** Newest first. */
  async list(caller: BatchCaller): Promise<readonly BatchInfo[]> {
    const owner = caller.isOperator ? undefined : caller.owner;
    const records = await this.#deps.store.batches.list({ owner, limit: LISTED });
    return await Promise.all(records.map(async (record) => this.#info(await this.#settled(record))));
  }

  /** What became of every part, in their order. Afterwards the batch is forgotten. */
  async collect(
    id: string,
    caller: BatchCaller,
  ): Promise<{ record: BatchRecord; items: BatchItem<object>[] }> {
    const record = await this.#find(id, caller);
    if (record.state === "running") {
      throw new AidoError("EXECUTION_CONFLICT", `Batch ${id} is still running`, {
        hint: "`aido batch list` shows how far it is; collect it when it has ended.",
        details: { batchId: id },
      });
    }
    const items = await this.#items(record);
    await this.#deps.store.batches.remove(id);
    return { record, items };
  }

  /** Begins no further part and ends those that run; what has ended can be collected. */
  async cancel(id: string, caller: BatchCaller): Promise<BatchInfo> {
    const record = await this.#find(id, caller);
    if (record.state === "running") await this.#end(record, "cancelled", undefined);
    const running = this.#running.get(id);
    running?.stop.abort();
    await running?.ended.catch(() => undefined);
    return await this.get(id, caller);
  }

  /** Says of batches whose process has died that they are lost; forgets what has expired. */
  async recover(): Promise<void> {
    const { store, clock } = this.#deps;
    for (const record of await store.batches.running()) await this.#settled(record);
    while ((await store.batches.removeExpired(clock.now(), FORGET_AT_ONCE)) === FORGET_AT_ONCE);
  }

  /** Ends what runs, and writes down how far it came. */
  async close(): Promise<void> {
    const all = [...this.#running.values()];
    for (const { stop } of all) stop.abort();
    await Promise.allSettled(all.map(({ ended }) => ended));
  }

  async #run<Result extends object>(
    record: BatchRecord,
    plan: BatchPlan<Result>,
    stop: AbortController,
  ): Promise<BatchOutcome<Result>> {
    const enough = new AbortController();
    const one = async (position: number): Promise<BatchItem<Result>> => {
      const signal = AbortSignal.any([stop.signal, enough.signal]);
      const about = plan.about?.(position) ?? {};
      try {
        if (signal.aborted || !(await this.#goesOn(record.id))) throw notNeeded(enough.signal.aborted);
        const result = await plan.work(position, signal, record.id);
        const kept = { ...about, ...(plan.kept?.(result) ?? result) };
        await this.#keep(record, position, kept, plan.counts?.(result) ?? {});
        if (plan.suffices?.(result) === true) enough.abort();
        return { ...about, ...result };
      } catch (thrown) {
        const error = signal.aborted ? notNeeded(enough.signal.aborted, thrown) : thrown;
        const failure = { ...about, ...toFailure(error) };
        await this.#keep(record, position, failure, {});
        return failure;
      }
    };
    const items = await inOrder(plan.count, plan.parallel ? PARALLEL : 1, one);
    const aggregate = plan.aggregate?.(items);
    await this.#end(record, stop.signal.aborted ? "cancelled" : "done", aggregate);
    return { batchId: record.id, items, aggregate };
  }

  /** What cannot be written down is still the caller's answer; only who collects it later finds it missing. */
  async #keep({ id }: BatchRecord, position: number, item: object, counts: Counts): Promise<void> {
    try {
      await this.#deps.store.batches.endItem(id, position, item, counts);
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      this.#deps.logger.warn({ event: "batch.keep", batchId: id, position, code, message }, "part not kept");
    }
  }

  /** Another process may have cancelled it. */
  async #goesOn(id: string): Promise<boolean> {
    return (await this.#deps.store.batches.get(id))?.state === "running";
  }

  /** A batch with this id is there already: it is waited for and not run again. */
  async #known<Result>(
    asked: BatchRecord,
    caller: BatchCaller,
    signal: AbortSignal,
  ): Promise<BatchOutcome<Result>> {
    const isOurs = (record: BatchRecord) => record.owner === caller.owner && record.kind === asked.kind;
    const first = await this.#deps.store.batches.get(asked.id);
    if (first !== undefined && (!isOurs(first) || first.count !== asked.count)) {
      throw new AidoError("EXECUTION_CONFLICT", `The batch id ${asked.id} is taken by another batch`, {
        hint: "Leave the id out, or choose another.",
      });
    }
    const here = this.#running.get(asked.id);
    if (here !== undefined) return (await orAborted(here.ended, signal)) as BatchOutcome<Result>;
    for (;;) {
      const record = await this.#find(asked.id, caller);
      if (record.state !== "running") {
        const items = (await this.#items(record)) as BatchItem<Result>[];
        return { batchId: record.id, items, aggregate: record.aggregate };
      }
      await this.#deps.clock.sleep(POLL_MS, signal);
    }
  }

  async #items(record: BatchRecord): Promise<BatchItem<object>[]> {
    const ended = await this.#deps.store.batches.items(record.id);
    const missing = missingPart(record.state);
    return Array.from({ length: record.count }, (_, at) => (ended.get(at) ?? missing) as BatchItem<object>);
  }

  async #find(id: string, caller: BatchCaller): Promise<BatchRecord> {
    const record = await this.#deps.store.batches.get(id);
    if (record === undefined || !(caller.isOperator || record.owner === caller.owner)) {
      throw new AidoError("RESOURCE_NOT_FOUND", `Batch not found: ${JSON.stringify(id.slice(0, 100))}`, {
        hint: "`aido batch list` shows those there are; one that was collected, or is too old, is forgotten.",
      });
    }
    return await this.#settled(record);
  }

  async #settled(record: BatchRecord): Promise<BatchRecord> {
    if (record.state !== "running" || !(await this.#deps.presence.isGone(record.holder))) return record;
    await this.#end(record, "lost", undefined);
    return (await this.#deps.store.batches.get(record.id)) ?? record;
  }

  async #end(
    { id }: BatchRecord,
    state: "done" | "cancelled" | "lost",
    aggregate: BatchAggregate | undefined,
  ): Promise<void> {
    const { store, clock, ttlMs } = this.#deps;
    const endedAt = clock.now();
    const expiresAt = new Date(endedAt.getTime() + ttlMs);
    await store.batches.end(id, { state, aggregate, endedAt, expiresAt });
  }

  async #info(record: BatchRecord): Promise<BatchInfo> {
    const { owner: _, holder: __, aggregate: ___, ...info } = record;
    return { ...info, ...(await this.#deps.store.batches.progress(record.id)) };
  }
}
