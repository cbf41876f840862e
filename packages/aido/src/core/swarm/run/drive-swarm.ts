import { toAidoError } from "@aido/sdk/protocol";
import { type Budgets, usedUp } from "../follow/budgets.ts";
import { WorkerDriver } from "../follow/drive-worker.ts";
import {
  addUsage,
  NO_USAGE,
  type WorkerPlan,
  type WorkerRecord,
  type WorkerUsage,
} from "../records/worker-record.ts";
import { isActive, type SwarmContainer, type SwarmState } from "../state/swarm-state.ts";
import type { SwarmDeps, WorkerSurroundings } from "../swarm-deps.ts";
import type { SwarmDone, SwarmEvent, WorkerResult } from "../swarm-event.ts";
import type { TaskFile } from "../tasks/task-file.ts";

/** How often others' changes of the state are looked for: workers that were added, and pending ones that were stopped. */
const LOOK_MS = 2000;

export interface SwarmRun {
  readonly maxWorkers: number;
  readonly isResumed: boolean;
  /** Of the swarm as a whole. */
  readonly budgets: Budgets;
  /** Seconds that it was run before. */
  readonly secondsBefore: number;
  /** Told now and then, and at the end. */
  readonly onSeconds?: ((seconds: number) => Promise<void>) | undefined;
  /** For workers whose record was lost. */
  readonly plan: WorkerPlan;
  readonly surroundings: WorkerSurroundings;
  /** Undefined when it cannot be read any more: then a worker's stories are not told. */
  readonly readTask: (path: string) => Promise<TaskFile | undefined>;
}

/**
 * Runs every worker of the state that is pending or running to its end, so many at once. Whoever calls this holds the driver's lock.
 * Aborted, it leaves the workers that run to themselves.
 */
export async function driveSwarm(deps: SwarmDeps, run: SwarmRun, signal: AbortSignal): Promise<SwarmDone> {
  return await new SwarmDriver(deps, run).run(signal);
}

class SwarmDriver {
  readonly #deps: SwarmDeps;
  readonly #run: SwarmRun;
  readonly #since: number;
  readonly #drivers = new Map<string, WorkerDriver>();
  readonly #active = new Map<string, Promise<void>>();
  readonly #results = new Map<string, WorkerResult>();
  readonly #known = new Map<string, { createdAt: string; record: WorkerRecord | undefined }>();
  /** By workers that were added again since. */
  #usedBefore = NO_USAGE;
  #halted: string | undefined;
  #wake = () => {};
  #saidSeconds = 0;

  constructor(deps: SwarmDeps, run: SwarmRun) {
    const emit = (event: SwarmEvent) => {
      deps.emit(event);
      if (event.type === "usage") this.#checkBudgets();
    };
    this.#deps = { ...deps, emit };
    this.#run = run;
    this.#since = deps.clock.now().getTime();
  }

  async run(signal: AbortSignal): Promise<SwarmDone> {
    const { clock, emit } = this.#deps;
    const { maxWorkers, isResumed } = this.#run;
    let state = await this.#deps.state.read();
    emit({ type: "swarm", at: clock.now(), swarmId: state.swarmId, maxWorkers, isResumed });
    for (;;) {
      await this.#takeUp(state, signal);
      if (this.#active.size === 0) break;
      await this.#change(signal);
      this.#checkBudgets();
      await this.#saySeconds(30);
      if (signal.aborted) break;
      state = await this.#deps.state.read().catch((thrown) => this.#keep(state, thrown));
    }
    await Promise.all(this.#active.values());
    await this.#saySeconds(0);
    const results = state.containers.map((entry) => this.#resultOf(entry));
    const done: SwarmDone = { type: "done", at: clock.now(), isInterrupted: signal.aborted, results };
    emit(done);
    return done;
  }

  /** Goes on with what runs, and begins what waits as far as there is room. */
  async #takeUp(state: SwarmState, signal: AbortSignal): Promise<void> {
    for (const entry of state.containers) {
      this.#forgetReplaced(entry);
      if (!this.#known.has(entry.containerName)) await this.#announce(state.swarmId, entry);
    }
    // What was used before may be all there is.
    this.#checkBudgets();
    const waiting = state.containers.filter(
      (entry) => isActive(entry) && !this.#drivers.has(entry.containerName),
    );
    for (const entry of waiting) {
      if (signal.aborted) return;
      const isRoom = this.#active.size < this.#run.maxWorkers && this.#halted === undefined;
      if (entry.status === "running" || isRoom) await this.#drive(state.swarmId, entry, signal);
    }
  }

  /** Of a worker that has ended and was added again nothing holds any more but what it used. */
  #forgetReplaced({ containerName: name, createdAt }: SwarmContainer): void {
    const known = this.#known.get(name);
    if (known === undefined || known.createdAt === createdAt || this.#active.has(name)) return;
    this.#usedBefore = addUsage(this.#usedBefore, this.#usageOf(name));
    this.#known.delete(name);
    this.#drivers.delete(name);
    this.#results.delete(name);
  }

  async #announce(swarmId: string, entry: SwarmContainer): Promise<void> {
    const { clock, emit, records } = this.#deps;
    const { containerName: worker, taskFilePath, branchName } = entry;
    const record = await records.read(swarmId, worker);
    this.#known.set(worker, { createdAt: entry.createdAt, record });
    const file = await this.#run.readTask(taskFilePath);
    emit({
      type: "worker",
      at: clock.now(),
      worker,
      taskFile: taskFilePath,
      branch: branchName,
      title: file?.metadata.title ?? taskFilePath,
      state: entry.status,
      stories: (file?.stories ?? []).map(({ id, title, status }) => ({
        id,
        title,
        status: record?.stories[id] ?? status,
      })),
      usage: record?.usage ?? NO_USAGE,
      changedFiles: record?.changedFiles ?? [],
      startedAt: record?.startedAt === undefined ? undefined : new Date(record.startedAt),
    });
  }

  async #drive(swarmId: string, entry: SwarmContainer, signal: AbortSignal): Promise<void> {
    const name = entry.containerName;
    const driver = new WorkerDriver(this.#deps, {
      swarmId,
      entry,
      record: this.#known.get(name)?.record,
      plan: this.#run.plan,
      file: await this.#run.readTask(entry.taskFilePath),
      surroundings: this.#run.surroundings,
    });
    this.#drivers.set(name, driver);
    const ended = driver.run(signal).then((result) => {
      this.#results.set(name, result);
      this.#active.delete(name);
      this.#wake();
    });
    this.#active.set(name, ended);
    if (this.#halted !== undefined) driver.stop({ status: "stopped", reason: this.#halted });
  }

  /** Until a worker ends, a while is over, or nobody waits any more. */
  async #change(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const slept = this.#deps.clock
      .sleep(LOOK_MS, AbortSignal.any([signal, over.signal]))
      .catch(() => undefined);
    await Promise.race([woken, slept]);
    over.abort();
  }

  #checkBudgets(): void {
    if (this.#halted !== undefined) return;
    const used = [...this.#known.keys()]
      .map((name) => this.#usageOf(name))
      .reduce(addUsage, this.#usedBefore);
    const reason = usedUp(this.#run.budgets, used, this.#seconds());
    if (reason === undefined) return;
    this.#halted = `The swarm's budget is used up: ${reason}`;
    this.#warn(`${this.#halted}; its workers are stopped`);
    for (const driver of this.#drivers.values()) driver.stop({ status: "stopped", reason: this.#halted });
  }

  /** With what its earlier containers used. */
  #usageOf(name: string): WorkerUsage {
    const record = this.#known.get(name)?.record;
    const read = addUsage(record?.usage ?? NO_USAGE, record?.usedBefore ?? NO_USAGE);
    return this.#drivers.get(name)?.usage ?? read;
  }

  #warn(message: string): void {
    this.#deps.emit({ type: "warning", at: this.#deps.clock.now(), message });
  }

  /** A state that cannot be read for now is as it was. */
  #keep(state: SwarmState, thrown: unknown): SwarmState {
    this.#warn(toAidoError(thrown).message);
    return state;
  }

  #seconds(): number {
    return this.#run.secondsBefore + (this.#deps.clock.now().getTime() - this.#since) / 1000;
  }

  async #saySeconds(atLeast: number): Promise<void> {
    if (this.#seconds() - this.#saidSeconds < atLeast) return;
    this.#saidSeconds = this.#seconds();
    await this.#run.onSeconds?.(Math.round(this.#saidSeconds)).catch(() => undefined);
  }

  #resultOf(entry: SwarmContainer): WorkerResult {
    const { containerName: worker, taskFilePath: taskFile, branchName: branch, prUrl } = entry;
    const record = this.#known.get(worker)?.record;
    const known = this.#results.get(worker) ?? this.#drivers.get(worker)?.result();
    if (known !== undefined) return known;
    const errors = record?.reason === undefined ? [] : [record.reason];
    return {
      worker,
      taskFile,
      branch,
      state: entry.status,
      prUrl: prUrl ?? null,
      errors,
      lastLines: record?.lastLines ?? [],
    };
  }
}
