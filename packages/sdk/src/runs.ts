import type { Progress } from "./aido.ts";
import type { Isolation, OutputChunk, RunRecord, RunSpec, RunSummary } from "./protocol/index.ts";

/**
 * One-shot work: a task file, or the steps of a pipeline, run in a sandbox of its own and leave outputs, a
 * summary and evidence. Where no sandbox is named, the newest one that was made for runs is meant.
 */
export interface Runs {
  /** Makes the sandbox's directories, copies its inputs and fetches its image; nothing runs before `start`, unless asked for. */
  up(request: UpRequest, options?: RunOptions): Promise<RunRecord>;
  /** Resolves when the task has started. A sandbox runs one task, or one pipeline, at a time. */
  start(request: StartRun, options?: RunOptions): Promise<RunRecord>;
  get(sandbox?: string): Promise<RunRecord>;
  /** Resolves when the run has ended and its outputs are captured; an abort stops waiting, not the run. */
  wait(sandbox?: string, signal?: AbortSignal): Promise<RunSummary>;
  /** The summary of a run that has ended; undefined before. */
  summary(sandbox?: string): Promise<RunSummary | undefined>;
  /** Recorded output; with `follow` until the run has ended. The steps of a pipeline come in their order. */
  logs(request?: RunLogs, signal?: AbortSignal): AsyncIterable<RunOutput>;
  /** A file of `outputs/`, by its name in the summary's `outputFiles`. */
  output(path: string, sandbox?: string, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  /** Ends what the run executes; the run then finishes as failed. No error when nothing runs. */
  cancel(sandbox?: string): Promise<void>;
}

export interface RunOptions {
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
}

/** A file sent along with a request. */
export interface RunFile {
  /** Relative, with forward slashes, without `..`. */
  path: string;
  executable?: boolean | undefined;
  content(): AsyncIterable<Uint8Array>;
}

export interface UpRequest {
  spec: RunSpec;
  /** Kept as the sandbox's own copy of `sandbox.yaml`. */
  specText: string;
  inputs: readonly RunFile[];
  /** One per different `task` of the spec's steps; `path` is that task. */
  tasks?: readonly RunFile[] | undefined;
  /** Default true: the container goes when the run has ended, and at the latest when the ttl is over. */
  autoDestroy?: boolean | undefined;
  /** Made for one task only: never taken as the newest sandbox by `start`. */
  implicit?: boolean | undefined;
  /** Started at once, as by `start`: the container starts while the files are written. Resolves when the task has started. */
  start?: NewRun | undefined;
  isolation?: Isolation | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
}

export interface StartRun extends NewRun {
  sandbox?: string | undefined;
  /** Overrides what the sandbox was made with. */
  autoDestroy?: boolean | undefined;
}

export interface NewRun {
  /** The task's file; absent runs the steps of the sandbox's spec. */
  task?: RunFile | undefined;
  /** Dangerous: the host's own network. */
  hostNetwork?: boolean | undefined;
  /** Dangerous: full privileges of the engine. */
  privileged?: boolean | undefined;
}

export interface RunLogs {
  sandbox?: string | undefined;
  follow?: boolean | undefined;
  /** Where a reader that was cut off goes on; absent begins with the first byte. */
  from?: RunPosition | undefined;
}

/** Offsets in the output of one step; all before it has been read. */
export interface RunPosition {
  step?: string | undefined;
  stdoutOffset: number;
  stderrOffset: number;
}

export interface RunOutput extends OutputChunk {
  /** The step that wrote it; absent for a single task. */
  step?: string | undefined;
}
