import type { Isolation } from "@aido/sdk/protocol";
import type { TaskRequest } from "../messages/message.ts";

/** The containers of a swarm's workers, one each. Names are checked, and only what this project has made is touched. */
export interface Workers {
  /** Refuses with what to install when the engine cannot give this isolation; it is never replaced by a weaker one. */
  checkRuntime(isolation: Isolation, signal?: AbortSignal): Promise<void>;
  /**
   * Resolves when the container is up and takes an adapter; until one is started the worker is pending. A name that
   * runs is refused with CONTAINER_NAME_TAKEN, one that has ended is removed and made anew. Whichever step fails,
   * nothing that it made stays.
   */
  create(request: WorkerRequest, signal?: AbortSignal): Promise<CreatedWorker>;
  /**
   * Starts the container of a worker that has ended, or is paused, once more, with the files it has, for another adapter: pending again. Gives
   * the container's id. Idempotent until an adapter is started.
   */
  restart(name: string, signal?: AbortSignal): Promise<string>;
  /** Raises RUNTIME_UNAVAILABLE when the engine does not answer, which says nothing about the worker. */
  status(name: string, signal?: AbortSignal): Promise<WorkerInfo>;
  /** Whether there was ever a worker of that name that nobody removed; the engine is not asked. */
  isKnown(name: string): Promise<boolean>;
  list(signal?: AbortSignal): Promise<readonly WorkerInfo[]>;
  /** Idempotent; ends what runs, and takes the worker's network too. */
  remove(name: string): Promise<void>;
  /** Idempotent: called again, also by another process, it starts nothing. The environment is kept nowhere. */
  startAdapter(name: string, start: AdapterStart, signal?: AbortSignal): Promise<void>;
  /**
   * The adapter's output from these offsets on, whichever process started it and also when it has ended; the last event
   * is its end. Following an ended adapter to its end is what lets its container end. Raises EXECUTION_NOT_FOUND when
   * no adapter was started.
   */
  follow(name: string, from: OutputOffsets, signal?: AbortSignal): AsyncIterable<WorkerEvent>;
  /** TERM to the adapter, and KILL to all it started after the grace. Stopping what does not run is no error. */
  stop(name: string, graceMs: number): Promise<void>;
}

export interface WorkerRequest {
  swarmId: string;
  /** `aimi-swarm-<slug>`, also the container's name in the engine. */
  name: string;
  taskFilePath: string;
  branchName: string;
  image: string;
  isolation: Isolation;
  limits: WorkerLimits;
}

export interface WorkerLimits {
  cpus: number;
  memoryBytes: number;
  /** Memory and swap together. */
  memoryAndSwapBytes: number;
  /** Watched where the engine cannot enforce it. */
  diskBytes: number;
}

export interface CreatedWorker {
  containerId: string;
  name: string;
  image: string;
  network: string;
  limits: WorkerLimits;
}

export const WORKER_STATES = ["pending", "running", "completed", "failed", "stopped", "not_found"] as const;
export type WorkerState = (typeof WORKER_STATES)[number];

export interface WorkerInfo {
  name: string;
  exists: boolean;
  swarmState: WorkerState;
  /** What the engine says; undefined when there is no container. */
  dockerState?: string | undefined;
  exitCode?: number | undefined;
  containerId?: string | undefined;
  image?: string | undefined;
  /** What the engine calls it. */
  runtime?: string | undefined;
  taskFilePath?: string | undefined;
  createdAt?: Date | undefined;
  startedAt?: Date | undefined;
  finishedAt?: Date | undefined;
}

export interface AdapterStart {
  request: TaskRequest;
  /** With the secrets; of the adapter alone. */
  env: Readonly<Record<string, string>>;
}

export interface OutputOffsets {
  stdoutOffset: number;
  stderrOffset: number;
  /** Ends with what is recorded by now, without the end of an adapter that still runs. */
  untilNow?: boolean | undefined;
}

export type WorkerEvent = WorkerOutput | WorkerEnd;

export interface WorkerOutput {
  type: "output";
  stream: "stdout" | "stderr";
  /** Of the first byte of `data`. */
  offset: number;
  data: Uint8Array;
}

export interface WorkerEnd {
  type: "end";
  /** Undefined when nobody can tell any more: its container was lost or removed. */
  exitCode: number | undefined;
  signal: string | undefined;
  outOfMemory: boolean;
  /** Its container's life was over. */
  timedOut?: boolean | undefined;
}
