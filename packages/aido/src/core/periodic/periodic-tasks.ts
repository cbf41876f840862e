import { randomUUID } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { LeaseStore } from "../store/store.ts";
import { RepeatedFailures } from "./repeated-failures.ts";

export interface PeriodicTask {
  /** `noun.verb`; also the name of its lease. */
  readonly name: string;
  /** From the end of one run to the beginning of the next; worked out each time when it is not always the same. */
  readonly everyMs: number | (() => number);
  /** Of all processes on one store, one at a time does it. */
  readonly isShared?: boolean | undefined;
  /** Must give up soon when the signal is aborted: the process stops, or another one has taken over. */
  run(signal: AbortSignal): Promise<unknown>;
}

export interface PeriodicDeps {
  readonly leases: LeaseStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
const STOP_LIMIT_MS = 10_000;

/** Whatever a server does again and again: each task once at a time, a failed one again at its next turn. */
export class PeriodicTasks {
  readonly #deps: PeriodicDeps;
  readonly #failures: RepeatedFailures;
  readonly #holder = randomUUID();
  readonly #stopping = new AbortController();
  readonly #tasks = new Map<string, { task: PeriodicTask; loop: Promise<void> }>();
  readonly #running = new Map<string, Promise<boolean>>();

  constructor(deps: PeriodicDeps) {
    this.#deps = deps;
    this.#failures = new RepeatedFailures(deps.logger);
  }

  /** Its first turn is one interval from now. */
  start(task: PeriodicTask): void {
    if (this.#tasks.has(task.name)) throw new Error(`There is a task ${task.name} already`);
    this.#tasks.set(task.name, { task, loop: this.#repeat(task) });
  }

  /**
   * Out of turn; joins a run that goes on, and raises what that raises. False when another process is at it and
   * nothing was done here.
   */
  async runNow(name: string): Promise<boolean> {
    const known = this.#tasks.get(name);
    if (known === undefined) throw new Error(`There is no task ${name}`);
    return await this.#once(known.task);
  }

  /** Those that have not ended within the limit are left to the end of the process, and named. */
  async stop(limitMs = STOP_LIMIT_MS): Promise<void> {
    const { clock, logger } = this.#deps;
    this.#stopping.abort();
    const enough = new AbortController();
    const limit = clock.sleep(limitMs, enough.signal).catch(() => undefined);
    const loops = [...this.#tasks.values()].map(({ loop }) => loop);
    const running = [...this.#running.values()].map((run) => run.catch(() => undefined));
    await Promise.race([Promise.all([...loops, ...running]), limit]);
    enough.abort();
    for (const name of this.#running.keys()) logger.warn({ event: name }, "did not end in time");
  }

  async #repeat(task: PeriodicTask): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      const ms = typeof task.everyMs === "number" ? task.everyMs : task.everyMs();
      await this.#deps.clock.sleep(ms, signal).catch(() => undefined);
      if (signal.aborted) return;
      await this.#failures.quietly(task.name, () => this.#once(task));
    }
  }

  #once(task: PeriodicTask): Promise<boolean> {
    const running = this.#running.get(task.name);
    if (running !== undefined) return running;
    const run = this.#run(task).finally(() => this.#running.delete(task.name));
    this.#running.set(task.name, run);
    return run;
  }

  async #run(task: PeriodicTask): Promise<boolean> {
    const { leases, clock } = this.#deps;
    const stopping = this.#stopping.signal;
    if (task.isShared !== true) {
      await task.run(stopping);
      return true;
    }
    const now = clock.now();
    if (!(await leases.take(task.name, this.#holder, leaseEnd(now), now))) return false;
    const lost = new AbortController();
    const done = new AbortController();
    const renewing = this.#renew(task.name, lost, done.signal);
    try {
      await task.run(AbortSignal.any([stopping, lost.signal]));
      return true;
    } finally {
      done.abort();
      await renewing;
      await leases.release(task.name, this.#holder);
    }
  }

  async #renew(name: string, lost: AbortController, done: AbortSignal): Promise<void> {
    const { leases, clock } = this.#deps;
    for (;;) {
      await clock.sleep(RENEW_MS, done).catch(() => undefined);
      if (done.aborted) return;
      // A store that does not answer is asked again at the next turn; the lease outlasts two of them.
      const isKept = await leases.renew(name, this.#holder, leaseEnd(clock.now())).catch(() => true);
      if (!isKept) lost.abort();
    }
  }
}

function leaseEnd(now: Date): Date {
  return new Date(now.getTime() + LEASE_MS);
}
