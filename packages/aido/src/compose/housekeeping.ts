import { setTimeout as sleep } from "node:timers/promises";
import type { CoreAido } from "../core/core-aido.ts";
import type { Logger } from "../core/logger.ts";
import type { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import { RepeatedFailures } from "../core/periodic/repeated-failures.ts";
import type { SandboxRecord } from "../core/store/store.ts";

export interface HousekeepingDeps {
  aido: CoreAido;
  logger: Logger;
  tasks: PeriodicTasks;
  forgetAnswers: (now: Date) => Promise<void>;
}

const EXPIRE_EVERY_MS = 1_000;
const RECONCILE_EVERY_MS = 60_000;
/** A driver that does not answer is asked again this often. */
const RETRY_MS = 1_000;
const RECOVER_AT_ONCE = 8;
const PAGE = 1000;

/**
 * What a server does besides answering: takes over what a former process left running, notices ends, removes what has
 * expired. Each look costs what is due, not what exists. A driver that is not there is waited for: the server answers
 * meanwhile, and says so.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #stopping = new AbortController();
  readonly #failures: RepeatedFailures;
  #watching: Promise<void> | undefined;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
    this.#failures = new RepeatedFailures(deps.logger);
  }

  /** Resolves when everything a former process left has been looked at, or the driver does not answer. */
  async start(): Promise<void> {
    const { aido, tasks, forgetAnswers } = this.#deps;
    await this.#failures.quietly("jobs.recover", () => aido.jobs.recover());
    const isDone = await this.#takeOver();
    tasks.start({ name: "sandboxes.expire", everyMs: EXPIRE_EVERY_MS, run: () => aido.sandboxes.expire() });
    tasks.start({
      name: "sandboxes.reconcile",
      everyMs: RECONCILE_EVERY_MS,
      run: () => aido.sandboxes.reconcile(),
    });
    tasks.start({
      name: "answers.forget",
      everyMs: RECONCILE_EVERY_MS,
      run: () => forgetAnswers(new Date()),
    });
    tasks.start({
      name: "jobs.recover",
      everyMs: RECONCILE_EVERY_MS,
      run: () => aido.jobs.recover(),
    });
    await this.#failures.quietly("workspaces.tidy", () => aido.workspaces.tidy());
    tasks.start({
      name: "workspaces.expire",
      everyMs: RECONCILE_EVERY_MS,
      run: () => aido.workspaces.expire(),
    });
    this.#watching = this.#watch(isDone);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#watching, this.#deps.tasks.stop()]);
  }

  async #takeOver(): Promise<boolean> {
    const { aido } = this.#deps;
    if (!(await this.#failures.quietly("sandboxes.reconcile", () => aido.sandboxes.reconcile())))
      return false;
    await this.#failures.quietly("sandboxes.settle", () => aido.sandboxes.settleAtStart());
    const left = await this.#running();
    // One that does not answer takes its time; it must not hold up all others.
    const recover = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const { id } = next;
        await this.#failures.quietly("execs.recover", () => aido.recover(id));
      }
    };
    await Promise.all(Array.from({ length: RECOVER_AT_ONCE }, recover));
    await this.#failures.quietly("runs.recover", () => aido.runs.recover({ adopt: true }));
    return true;
  }

  async #running(): Promise<SandboxRecord[]> {
    const { sandboxes } = this.#deps.aido.store;
    const all: SandboxRecord[] = [];
    for (let before: string | undefined; ; ) {
      const page = await sandboxes.list({ states: ["running"], limit: PAGE, before });
      all.push(...page);
      before = page.at(-1)?.id;
      if (page.length < PAGE) return all;
    }
  }

  /** Ends that happen while the driver is away are found by taking over again when it is back. */
  async #watch(isTakenOver: boolean): Promise<void> {
    const { aido } = this.#deps;
    const { signal } = this.#stopping;
    // A container that ends may be one that nobody has or had: of the pool, or just destroyed.
    const look = async (id: string) => {
      const record = await aido.store.sandboxes.get(id);
      if (record !== undefined && record.state !== "deleted") await aido.sandboxes.get(id);
    };
    const onEnd = (id: string) => void this.#failures.quietly("sandbox.ended", () => look(id));
    for (let isCurrent = isTakenOver; !signal.aborted; isCurrent = await this.#takeOver()) {
      if (isCurrent) await aido.driver.watch(onEnd, signal).catch(() => undefined);
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }
}
