import { type CreateSandbox, toAidoError } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../store/store.ts";
import type { PoolSpec } from "./parse-pool.ts";
import { poolKey } from "./pool-key.ts";
import { PooledSandboxes, type PooledSandboxesDeps } from "./pooled-sandboxes.ts";
import { type Ready, Shelf } from "./shelf.ts";

/** Each ready sandbox is heard of at least this often. */
const RENEW_MS = 30_000;
const LOOK_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Whoever has just got a sandbox uses it now; making the next one can wait, but not for ever. */
const QUIET_MS = 200;
const PATIENCE_MS = 5_000;
const REMOVE_AT_ONCE = 8;

export interface PoolState {
  image: string;
  isolation: string;
  size: number;
  target: number;
  ready: number;
  hits: number;
  misses: number;
}

/**
 * Sandboxes that run before anybody asks for them. Each is given away once, to one owner; new ones are made in the
 * background, one at a time, when nothing else is being made.
 */
export class WarmPool {
  readonly #deps: PooledSandboxesDeps;
  readonly #specs: readonly PoolSpec[];
  readonly #sandboxes: PooledSandboxes;
  readonly #shelves = new Map<string, Shelf>();
  readonly #closing = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #beside = 0;
  #isPrepared = false;

  constructor(deps: PooledSandboxesDeps, specs: readonly PoolSpec[]) {
    this.#deps = deps;
    this.#specs = specs;
    this.#sandboxes = new PooledSandboxes(deps);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** A running sandbox as asked for, at once; undefined when there is none and it must be made. */
  async claim(request: CreateSandbox, signal?: AbortSignal): Promise<SandboxRecord | undefined> {
    // A sandbox in the pool has its id already, and its mounts.
    if (request.id !== undefined || request.workspace !== undefined || this.#closing.signal.aborted)
      return undefined;
    const wanted = await this.#deps.build(request);
    const shelf = this.#shelves.get(poolKey(wanted));
    if (shelf === undefined) return undefined;
    this.#askedAt = this.#now();
    shelf.asked(this.#askedAt);
    try {
      return await this.#take(shelf, wanted, signal);
    } finally {
      this.#wake();
    }
  }

  /** While `work` makes a sandbox that somebody waits for, none is made for the pool. */
  async beside<T>(work: () => Promise<T>): Promise<T> {
    this.#beside += 1;
    try {
      return await work();
    } finally {
      this.#beside -= 1;
      this.#wake();
    }
  }

  state(): readonly PoolState[] {
    const now = this.#now();
    return [...this.#shelves.values()].map((shelf) => ({
      image: shelf.image,
      isolation: shelf.request.isolation ?? "container",
      size: shelf.size,
      target: shelf.target(now),
      ready: shelf.count,
      hits: shelf.hits,
      misses: shelf.misses,
    }));
  }

  /** Removes every sandbox that nobody got. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#loop;
    const left = [...this.#shelves.values()].flatMap((shelf) => shelf.takeAll());
    const remove = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        await this.#sandboxes.discard(next.record.id);
      }
    };
    await Promise.all(Array.from({ length: REMOVE_AT_ONCE }, remove));
  }

  async #take(
    shelf: Shelf,
    wanted: SandboxRecord,
    signal: AbortSignal | undefined,
  ): Promise<SandboxRecord | undefined> {
    for (let ready = shelf.take(); ready !== undefined; ready = shelf.take()) {
      let claimed: SandboxRecord | undefined;
      try {
        signal?.throwIfAborted();
        claimed = await this.#sandboxes.claim(ready, wanted);
      } catch (thrown) {
        // The request is at fault, not the sandbox: somebody else may have it.
        await this.#putBack(shelf, ready);
        throw thrown;
      }
      if (claimed === undefined) continue;
      shelf.hits += 1;
      return claimed;
    }
    shelf.misses += 1;
    return undefined;
  }

  async #putBack(shelf: Shelf, ready: Ready): Promise<void> {
    const renewed = await this.#sandboxes.renew(ready);
    if (renewed === undefined) return;
    if (this.#closing.signal.aborted) await this.#sandboxes.discard(renewed.record.id);
    else shelf.put(renewed);
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#closing.signal.aborted) {
      try {
        if (!this.#isPrepared) await this.#prepare();
        if (!(await this.#step())) {
          await this.#sandboxes.discardLeft();
          await this.#rest(LOOK_MS);
        }
        pauseMs = FIRST_PAUSE_MS;
      } catch (thrown) {
        if (this.#closing.signal.aborted) return;
        const { code, message } = toAidoError(thrown);
        this.#deps.logger.warn({ event: "pool.fill", code, message, pauseMs }, "The pool cannot be filled");
        await this.#sleep(pauseMs);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  /** What each entry of the configuration means on this machine, and what a killed server has left. */
  async #prepare(): Promise<void> {
    for (const { request, size } of this.#specs) {
      const record = await this.#deps.build(request);
      const key = poolKey(record);
      if (!this.#shelves.has(key))
        this.#shelves.set(key, new Shelf({ key, size, request, image: record.image }));
    }
    this.#isPrepared = true;
  }

  /** One thing that is to be done; false when there is nothing. */
  async #step(): Promise<boolean> {
    await this.#adopt();
    for (const shelf of this.#shelves.values()) {
      const unseen = shelf.takeUnseenSince(this.#now() - RENEW_MS);
      if (unseen !== undefined) {
        await this.#putBack(shelf, unseen);
        return true;
      }
      if (shelf.count > shelf.target(this.#now())) {
        const surplus = shelf.take();
        if (surplus !== undefined) await this.#sandboxes.discard(surplus.record.id);
        return true;
      }
    }
    const neediest = [...this.#shelves.values()]
      .map((shelf) => ({ shelf, share: shelf.count / shelf.target(this.#now()) }))
      .filter(({ share }) => share < 1)
      .sort((a, b) => a.share - b.share)[0];
    if (neediest === undefined) return false;
    await this.#untilQuiet();
    if (this.#closing.signal.aborted) return false;
    const { request, key } = neediest.shelf;
    neediest.shelf.put(await this.#sandboxes.make(request, key, this.#closing.signal));
    return true;
  }

  async #adopt(): Promise<void> {
    const { pool, presence, driver } = this.#deps;
    for (const pooled of await pool.list()) {
      const isOurs = pooled.holder === presence.self || pooled.record.driver !== driver.name;
      if (isOurs || !(await presence.isGone(pooled.holder))) continue;
      const shelf = this.#shelves.get(pooled.key);
      const isWanted = shelf !== undefined && shelf.count < shelf.target(this.#now());
      const ready = await this.#sandboxes.adopt(pooled, isWanted);
      if (ready !== undefined) shelf?.put(ready);
    }
  }

  async #untilQuiet(): Promise<void> {
    const deadline = this.#now() + PATIENCE_MS;
    for (;;) {
      const now = this.#now();
      const isQuiet = this.#beside === 0 && now - this.#askedAt >= QUIET_MS;
      if (isQuiet || now >= deadline || this.#closing.signal.aborted) return;
      await this.#sleep(QUIET_MS / 4);
    }
  }

  /** Until something may have changed. */
  async #rest(ms: number): Promise<void> {
    const done = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await Promise.race([woken, this.#sleep(ms, done.signal)]);
    done.abort();
  }

  async #sleep(ms: number, also?: AbortSignal): Promise<void> {
    const { signal } = this.#closing;
    const ends = also === undefined ? signal : AbortSignal.any([signal, also]);
    await this.#deps.clock.sleep(ms, ends).catch(() => undefined);
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }
}
