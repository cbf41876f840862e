import { AidoError, isAidoError, toAidoError } from "@aido/sdk/protocol";
import {
  addUsage,
  beginAnew,
  recordFor,
  type WorkerPlan,
  type WorkerRecord,
  type WorkerUsage,
} from "../records/worker-record.ts";
import { NO_CONTAINER, type SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps, WorkerSurroundings } from "../swarm-deps.ts";
import type { WorkerResult, WorkerState } from "../swarm-event.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import type { WorkerEnd } from "../workers/workers.ts";
import { adapterStart } from "./adapter-start.ts";
import { EnginePatience } from "./engine-patience.ts";
import { EntryWriter } from "./entry-writer.ts";
import { makeContainer } from "./make-container.ts";
import { Saved } from "./saved.ts";
import { endingOf, type HostDecision } from "./worker-end.ts";
import { overBudget, WorkerLimitsWatch } from "./worker-limits-watch.ts";
import { WorkerProgress } from "./worker-progress.ts";
import { WorkerStop } from "./worker-stop.ts";

const TICK_MS = 1000;

export interface DrivenWorker {
  readonly swarmId: string;
  readonly entry: SwarmContainer;
  readonly record: WorkerRecord | undefined;
  /** For a record that was lost. */
  readonly plan: WorkerPlan;
  readonly file: TaskFile | undefined;
  readonly surroundings: WorkerSurroundings;
}

/** Takes one worker from wherever it is to its end: makes its container, starts its adapter, follows what it says. */
export class WorkerDriver {
  readonly #deps: SwarmDeps;
  readonly #worker: DrivenWorker;
  readonly #name: string;
  readonly #entry: EntryWriter;
  readonly #progress: WorkerProgress;
  readonly #savedRecord: Saved;
  readonly #engine: EnginePatience;
  readonly #stop: WorkerStop;
  readonly #watch = new WorkerLimitsWatch();
  readonly #given = new AbortController();
  #containerId: string;
  #state: WorkerState;
  #heardAt: Date;
  #decision: HostDecision | undefined;
  #result: { prUrl: string | null; errors: readonly string[] };

  constructor(deps: SwarmDeps, worker: DrivenWorker) {
    this.#deps = deps;
    this.#worker = worker;
    const { swarmId, entry } = worker;
    this.#name = entry.containerName;
    this.#containerId = entry.containerId;
    this.#state = entry.status;
    this.#result = { prUrl: entry.prUrl ?? null, errors: [] };
    this.#heardAt = deps.clock.now();
    this.#engine = new EnginePatience(deps.clock, (message) => this.#warn(message));
    const graceMs = worker.surroundings.stopGraceMs;
    this.#stop = new WorkerStop(deps.workers, deps.clock, { name: this.#name, graceMs });
    const record = recordFor(worker);
    this.#progress = new WorkerProgress(deps, record, worker.file?.stories ?? []);
    const onError = (thrown: unknown) =>
      this.#warn(`Its state cannot be kept: ${toAidoError(thrown).message}`);
    const onEnded = () => this.stop({ status: "stopped", reason: "It was stopped before it ran" });
    this.#entry = new EntryWriter(deps, { swarmId, name: this.#name, onError, onEnded });
    this.#savedRecord = new Saved(() => deps.records.write(this.#progress.record), onError);
  }

  /** With what earlier containers of it used. */
  get usage(): WorkerUsage {
    return addUsage(this.#progress.record.usedBefore, this.#progress.usage);
  }

  /** Ends in whatever way the worker does; aborted, it lets go of a worker that lives on. */
  async run(signal: AbortSignal): Promise<WorkerResult> {
    const given = AbortSignal.any([signal, this.#given.signal]);
    const over = new AbortController();
    const guard = this.#guard(AbortSignal.any([given, over.signal]));
    try {
      await this.#begin(given);
      const end = await this.#follow(given);
      // There is nothing left to insist on.
      over.abort();
      await this.#finish(end);
    } catch (thrown) {
      if (signal.aborted) {
        await this.#keepRecord();
        return this.result();
      }
      await this.#giveUp(thrown);
    } finally {
      over.abort();
      await guard;
      await this.#entry.flush().catch(() => undefined);
    }
    return this.result();
  }

  /** Asks the worker to end; what it has done is kept. */
  stop(decision: HostDecision): void {
    if (this.#stop.isAsked || isEnded(this.#state)) return;
    this.#decision ??= decision;
    this.#warn(`${decision.reason}; stopping it`);
    this.#stop.ask();
  }

  result(): WorkerResult {
    const { taskFilePath, branchName } = this.#worker.entry;
    const { lastLines } = this.#progress.record;
    return {
      worker: this.#name,
      taskFile: taskFilePath,
      branch: branchName,
      state: this.#state,
      ...this.#result,
      lastLines,
    };
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { plan, secondsBefore = 0 } = this.#progress.record;
    if (this.#state !== "running") this.#decision ??= overBudget(plan, this.usage, secondsBefore);
    this.#mustRun();
    if (this.#containerId === NO_CONTAINER) await this.#create(signal);
    if (this.#state !== "running") await this.#start(signal);
    else this.#entry.set({ acpPid: this.#deps.pid });
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { records, pid } = this.#deps;
    const { record } = this.#progress;
    this.#become("creating");
    const wanted = { ...this.#worker, record };
    const containerId = await this.#engine.run(signal, () => makeContainer(this.#deps, wanted, signal));
    this.#containerId = containerId;
    this.#progress.restart({ ...beginAnew(record), containerId, isKept: record.isKept });
    await records.write(this.#progress.record);
    // Before the adapter runs: whoever comes after a crash finds the container by its entry.
    this.#entry.set({ containerId, acpPid: pid });
    await this.#entry.flush();
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { workers, clock, pid } = this.#deps;
    const { swarmId, entry, surroundings } = this.#worker;
    const { record } = this.#progress;
    const known = { ...entry, containerId: this.#containerId };
    this.#mustRun();
    const start = adapterStart(swarmId, known, { record, surroundings, now: clock.now() });
    await this.#engine.run(signal, () => workers.startAdapter(this.#name, start, signal));
    const startedAt = this.#progress.record.startedAt ?? clock.now().toISOString();
    this.#progress.note({ startedAt });
    this.#savedRecord.due();
    this.#entry.set({ status: "running", acpPid: pid });
    this.#become("running");
    this.#heardAt = clock.now();
    if (this.#stop.isAsked) this.#stop.ask();
  }

  /** Whoever decided meanwhile that it is not to run is right. */
  #mustRun(): void {
    if (this.#decision !== undefined) throw new AidoError("CANCELLED", this.#decision.reason);
  }

  async #follow(signal: AbortSignal): Promise<WorkerEnd> {
    return await this.#engine.run(signal, async () => {
      try {
        return await this.#followOnce(signal);
      } catch (thrown) {
        if (!isAidoError(thrown, "EXECUTION_NOT_FOUND")) throw thrown;
        await this.#start(signal);
        return await this.#followOnce(signal);
      }
    });
  }

  async #followOnce(signal: AbortSignal): Promise<WorkerEnd> {
    for await (const event of this.#deps.workers.follow(this.#name, this.#progress.reopen(), signal)) {
      this.#heardAt = this.#deps.clock.now();
      this.#engine.answered();
      if (event.type === "end") return event;
      // What comes from a worker that broke the rules is read to its end, and counts for nothing.
      if (this.#decision?.status === "failed") continue;
      this.#check(() => {
        if (this.#progress.take(event)) this.#entry.set({ storyProgress: this.#progress.counts });
      });
    }
    signal.throwIfAborted();
    throw new AidoError("RUNTIME_UNAVAILABLE", "The worker's output broke off");
  }

  async #finish(end: WorkerEnd): Promise<void> {
    if (this.#decision === undefined && this.#progress.record.last !== undefined) {
      this.#check(() => this.#progress.end());
    }
    const { status, reason, prUrl, errors } = endingOf(this.#progress.record, end, this.#decision);
    this.#result = { prUrl, errors };
    this.#progress.note({ reason });
    await this.#keepRecord();
    this.#entry.set({ status, prUrl, acpPid: null, storyProgress: this.#progress.counts });
    this.#become(status, { reason, exitCode: end.exitCode, ...(prUrl === null ? {} : { prUrl }) });
  }

  /** The worker cannot be driven: it has failed, unless the engine is silent, which says nothing about it. */
  async #giveUp(thrown: unknown): Promise<void> {
    const { message, hint, code } = toAidoError(thrown);
    const reason = this.#decision?.reason ?? message;
    this.#result = { ...this.#result, errors: [reason] };
    this.#progress.note({ reason });
    await this.#keepRecord();
    if (
      code === "RUNTIME_UNAVAILABLE" &&
      this.#containerId !== NO_CONTAINER &&
      this.#decision === undefined
    ) {
      this.#warn(`${reason}; \`aido swarm resume\` goes on with it`);
      return;
    }
    // A container in which nothing was started would wait for ever.
    const isNew = this.#state === "creating" && this.#containerId !== NO_CONTAINER;
    if (isNew && !this.#progress.record.isKept)
      await this.#deps.workers.remove(this.#name).catch(() => undefined);
    const status = this.#decision?.status ?? "failed";
    this.#entry.set({ status, acpPid: null });
    this.#become(status, { reason: hint === undefined ? reason : `${reason}. ${hint.replace(/\.$/, "")}` });
  }

  /** Before its entry says that it has ended: from then on the name may be another worker's. */
  async #keepRecord(): Promise<void> {
    this.#savedRecord.due();
    await this.#savedRecord.settled();
  }

  /** Broken rules end a worker. */
  #check(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      const { message } = toAidoError(thrown);
      this.stop({ status: "failed", reason: message });
      this.#decision = { status: "failed", reason: message };
    }
  }

  async #guard(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#deps.clock.sleep(TICK_MS, signal);
      } catch {
        return;
      }
      this.#entry.retry();
      if (this.#stop.isAsked) await this.#insist();
      else if (this.#state === "running") this.#look();
      if (this.#state === "running") this.#savedRecord.due();
    }
  }

  #look(): void {
    const now = this.#deps.clock.now();
    const { plan, startedAt, secondsBefore = 0 } = this.#progress.record;
    const since = new Date(startedAt ?? this.#heardAt).getTime();
    const seconds = Math.max(0, Math.floor((now.getTime() - since) / 1000));
    this.#progress.note({ seconds });
    const worked = { plan, usage: this.usage, seconds: secondsBefore + seconds };
    const found = this.#watch.look(now, { ...worked, heardAt: this.#heardAt });
    if (found === undefined) return;
    if ("stop" in found) this.stop(found.stop);
    else this.#warn(found.warning);
  }

  async #insist(): Promise<void> {
    if (!this.#stop.insist()) return;
    await this.#deps.workers.remove(this.#name).catch(() => undefined);
    this.#given.abort(new AidoError("CONTAINER_LOST", "It did not end when it was stopped"));
  }

  #become(
    state: WorkerState,
    more: { reason?: string | undefined; exitCode?: number | undefined; prUrl?: string } = {},
  ): void {
    this.#state = state;
    this.#deps.emit({ type: "state", at: this.#deps.clock.now(), worker: this.#name, state, ...more });
  }

  #warn(message: string): void {
    this.#deps.emit({ type: "warning", at: this.#deps.clock.now(), worker: this.#name, message });
  }
}

function isEnded(state: WorkerState): boolean {
  return state === "completed" || state === "failed" || state === "stopped";
}
