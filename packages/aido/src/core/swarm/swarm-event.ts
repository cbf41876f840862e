import type { WorkerUsage } from "./records/worker-record.ts";
import type { StoryStatus } from "./tasks/task-file.ts";

export const WORKER_STATES = ["pending", "creating", "running", "completed", "failed", "stopped"] as const;
/** As in the state file, and `creating` while the container is made. */
export type WorkerState = (typeof WORKER_STATES)[number];

export interface StoryInfo {
  readonly id: string;
  readonly title: string;
  readonly status: StoryStatus;
}

/** How one worker ended. */
export interface WorkerResult {
  readonly worker: string;
  readonly taskFile: string;
  readonly branch: string;
  readonly state: WorkerState;
  readonly prUrl: string | null;
  readonly errors: readonly string[];
  /** The last 20 lines of its output. */
  readonly lastLines: readonly string[];
}

interface Told<Type extends string> {
  readonly type: Type;
  readonly at: Date;
}

interface OfWorker<Type extends string> extends Told<Type> {
  /** The worker's name, which is its container's. */
  readonly worker: string;
}

/** First of all, once. */
export interface SwarmStarted extends Told<"swarm"> {
  readonly swarmId: string;
  /** Workers that may run at once; others wait as pending. */
  readonly maxWorkers: number;
  readonly isResumed: boolean;
}

/**
 * A worker as it is from the start: once for each, before anything else about it, also when a swarm is resumed, and again when a
 * failed one is begun anew. Whatever was known of that worker before is void.
 */
export interface WorkerAnnounced extends OfWorker<"worker"> {
  readonly taskFile: string;
  readonly branch: string;
  readonly title: string;
  readonly state: WorkerState;
  readonly stories: readonly StoryInfo[];
  readonly usage: WorkerUsage;
  readonly changedFiles: readonly string[];
  readonly startedAt: Date | undefined;
}

export interface WorkerChanged extends OfWorker<"state"> {
  readonly state: WorkerState;
  /** Why, where there is more to say than the state. */
  readonly reason?: string | undefined;
  readonly exitCode?: number | undefined;
  readonly prUrl?: string | undefined;
}

export interface StoryChanged extends OfWorker<"story"> {
  readonly story: string;
  readonly status: StoryStatus;
  readonly text: string;
}

/** One line of what the agent does (`progress`) or of its log (`log`). */
export interface WorkerSaid extends OfWorker<"progress" | "log"> {
  readonly text: string;
}

export interface WorkerUsed extends OfWorker<"usage">, WorkerUsage {}

/** Paths on the worker's branch that differ from its base and were not told before. */
export interface WorkerTouched extends OfWorker<"files"> {
  readonly paths: readonly string[];
}

export interface SwarmWarned extends Told<"warning"> {
  readonly worker?: string | undefined;
  readonly message: string;
}

/** Last of all, once. `isInterrupted`: the containers live on. */
export interface SwarmDone extends Told<"done"> {
  readonly isInterrupted: boolean;
  readonly results: readonly WorkerResult[];
}

/**
 * What a swarm's run tells whoever shows it. Texts and paths come from workers: their length is bounded, and that is all;
 * they reach a terminal through `printable` only.
 */
export type SwarmEvent =
  | SwarmStarted
  | WorkerAnnounced
  | WorkerChanged
  | StoryChanged
  | WorkerSaid
  | WorkerUsed
  | WorkerTouched
  | SwarmWarned
  | SwarmDone;
