import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../clock.ts";
import { SystemClock } from "../../system-clock.ts";
import { SwarmDirectory } from "../records/swarm-directory.ts";
import type { WorkerPlan } from "../records/worker-record.ts";
import { WorkerRecords } from "../records/worker-records.ts";
import { driveSwarm, type SwarmRun } from "../run/drive-swarm.ts";
import { prepareResume, type Resumption } from "../run/prepare-resume.ts";
import { beginSwarm, type SwarmMode } from "../start/begin-swarm.ts";
import type { SwarmContainer, SwarmState } from "../state/swarm-state.ts";
import { SwarmStateFile } from "../state/swarm-state-file.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import type { SwarmDone, SwarmEvent } from "../swarm-event.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { readTaskFile } from "../tasks/task-files.ts";
import { DEFAULT_WORKER_LIMITS } from "../workers/worker-limits.ts";
import { type FakeWorker, FakeWorkers } from "./fake-workers.ts";
import { storyJson, taskFileText } from "./task-file-text.ts";

export const PLAN: WorkerPlan = {
  isolation: "sysbox",
  agent: { agent: "claude" },
  envNames: [],
  silenceMs: 0,
};

const SWARM_ID = "3f2a91c0-5b7d-4e21-9c3a-0d1e2f3a4b5c";

/** A project with task files, and a swarm of fake workers on it; state and records are real files. */
export class SwarmBed implements Disposable {
  readonly project = mkdtempSync(join(tmpdir(), "aido-swarm-"));
  readonly workers = new FakeWorkers();
  readonly directory = new SwarmDirectory(this.project);
  readonly state: SwarmDeps["state"];
  readonly records = new WorkerRecords(this.directory);
  readonly events: SwarmEvent[] = [];
  readonly clock: Clock;
  readonly #memory: MemoryState | undefined;

  /** A state in memory is for tests that would write it a thousand times. */
  constructor(clock: Clock = new SystemClock(), memory?: MemoryState) {
    this.clock = clock;
    this.#memory = memory;
    this.state = memory ?? new SwarmStateFile({ project: this.project });
    mkdirSync(join(this.project, ".aimi/tasks"), { recursive: true });
  }

  /** A task file of so many stories. */
  async task(name: string, stories = 2): Promise<TaskFile> {
    const path = `.aimi/tasks/${name}-tasks.json`;
    const list = Array.from({ length: stories }, (_, index) => storyJson(`US-00${index + 1}`));
    const text = taskFileText(list, { metadata: { title: name, branchName: `feat/${name}` } });
    writeFileSync(join(this.project, path), text);
    return await readTaskFile(this.project, path);
  }

  async tasks(...names: string[]): Promise<TaskFile[]> {
    return await Promise.all(names.map((name) => this.task(name)));
  }

  get deps(): SwarmDeps {
    const { workers, state, records, clock } = this;
    return { workers, state, records, clock, pid: process.pid, emit: (event) => this.events.push(event) };
  }

  async begin(
    files: readonly TaskFile[],
    { mode = "new" as SwarmMode, plan = PLAN } = {},
  ): Promise<SwarmState> {
    const branches = { checkedOut: new Map(), defaultBranch: undefined };
    return await beginSwarm(this.deps, { mode, files, plan, branches, swarmId: SWARM_ID });
  }

  run(changes: Partial<SwarmRun> = {}): SwarmRun {
    return {
      maxWorkers: 4,
      isResumed: false,
      budgets: {},
      secondsBefore: 0,
      plan: PLAN,
      surroundings: {
        repoUrl: "https://example.com/shop.git",
        limits: DEFAULT_WORKER_LIMITS,
        image: "aimi-sandbox-shop:latest",
        env: { ANTHROPIC_API_KEY: "key" },
        stopGraceMs: 10_000,
      },
      readTask: this.readTask,
      ...changes,
    };
  }

  async drive(
    changes: Partial<SwarmRun> = {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<SwarmDone> {
    return await driveSwarm(this.deps, this.run(changes), signal);
  }

  async resume(changes: Partial<Resumption> = {}): Promise<SwarmState> {
    const planFor = (before: WorkerPlan | undefined) => before ?? PLAN;
    return await prepareResume(this.deps, { named: [], planFor, readTask: this.readTask, ...changes });
  }

  readonly readTask = (path: string) => readTaskFile(this.project, path).catch(() => undefined);

  onDisk(): SwarmState {
    if (this.#memory !== undefined) return this.#memory.current();
    return JSON.parse(readFileSync(join(this.project, ".aimi/swarm-state.json"), "utf8"));
  }

  entry(name: string): SwarmContainer {
    const found = this.onDisk().containers.find(
      ({ containerName }) => containerName === `aimi-swarm-${name}`,
    );
    if (found === undefined) throw new Error(`no entry ${name}`);
    return found;
  }

  statuses(): Record<string, string> {
    return Object.fromEntries(
      this.onDisk().containers.map(({ containerName, status }) => [
        containerName.slice("aimi-swarm-".length),
        status,
      ]),
    );
  }

  told<Type extends SwarmEvent["type"]>(type: Type): (SwarmEvent & { type: Type })[] {
    return this.events.filter((event): event is SwarmEvent & { type: Type } => event.type === type);
  }

  warnings(): string[] {
    return this.told("warning").map(({ message }) => message);
  }

  worker(name: string): FakeWorker {
    return this.workers.worker(`aimi-swarm-${name}`);
  }

  [Symbol.dispose](): void {
    rmSync(this.project, { recursive: true, force: true });
  }
}

/** A state that is no file: the same rules of one change after the other. */
export class MemoryState implements Pick<SwarmStateFile, "read" | "update" | "replace"> {
  #state: SwarmState | undefined;
  #last: Promise<unknown> = Promise.resolve();

  current(): SwarmState {
    if (this.#state === undefined) throw new AidoError("SWARM_NOT_FOUND", "No swarm");
    return this.#state;
  }

  async read(): Promise<SwarmState> {
    return this.current();
  }

  update(change: (state: SwarmState) => SwarmState | Promise<SwarmState>): Promise<SwarmState> {
    return this.replace(() => change(this.current()));
  }

  replace(make: (before: SwarmState | undefined) => SwarmState | Promise<SwarmState>): Promise<SwarmState> {
    const changed = this.#last.then(async () => {
      this.#state = await make(this.#state);
      return this.#state;
    });
    this.#last = changed.catch(() => undefined);
    return changed;
  }
}

function envelope(worker: FakeWorker, type: string, payload: object): object {
  const { swarmId } = worker.request;
  return { type, timestamp: "2026-01-05T00:00:00Z", swarmId, containerId: worker.containerId, payload };
}

/** The messages of an adapter. */
export function story(worker: FakeWorker, storyId: string, status: string, more: object = {}): void {
  worker.say(envelope(worker, "progress-update", { storyId, status, output: "", ...more }));
}

export function complete(worker: FakeWorker, payload: object = {}, exitCode = 0): void {
  worker.say(envelope(worker, "completion", { status: "completed", prUrl: null, errors: [], ...payload }));
  worker.finish(exitCode);
}

export function fail(worker: FakeWorker, code: string, message: string): void {
  worker.say(envelope(worker, "error", { code, message }));
  worker.finish(1);
}

/** An adapter that does both its stories and opens a pull request. */
export function doAll(worker: FakeWorker): void {
  for (const id of ["US-001", "US-002"]) {
    story(worker, id, "in_progress");
    story(worker, id, "completed");
  }
  complete(worker, { prUrl: "https://example.com/pull/1" });
}
