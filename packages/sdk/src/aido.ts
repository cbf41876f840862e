import type { Agents } from "./agents.ts";
import type { Gc } from "./gc.ts";
import type { History } from "./history.ts";
import type { Images } from "./images.ts";
import type { Batches, Jobs } from "./jobs.ts";
import type {
  CreatedSandbox,
  CreateSandbox,
  EvidenceEntry,
  EvidenceVerdict,
  ExecInfo,
  ExecRequest,
  FileEvent,
  FileInfo,
  OutputChunk,
  OutputRange,
  SandboxInfo,
  SandboxState,
  SandboxStats,
  SidecarAccess,
  TerminalSize,
} from "./protocol/index.ts";
import type { Reaper } from "./reaper.ts";
import type { Runs } from "./runs.ts";
import type { Snapshots } from "./snapshots.ts";
import type { Ssh } from "./ssh.ts";
import type { Workflows } from "./workflows.ts";
import type { Workspaces } from "./workspaces.ts";

/**
 * What every front end is written against. Core implements it in this process; the HTTP client implements
 * it for a server. Anything that can wait takes an AbortSignal; a sandbox is named by id, unique id prefix or name.
 */
export interface Aido {
  readonly sandboxes: Sandboxes;
  readonly execs: Execs;
  readonly files: Files;
  readonly images: Images;
  readonly evidence: Evidence;
  readonly runs: Runs;
  readonly history: History;
  readonly snapshots: Snapshots;
  readonly jobs: Jobs;
  readonly batches: Batches;
  readonly workflows: Workflows;
  readonly reaper: Reaper;
  /** Jobs, sandboxes, sessions, reaper and garbage collection in numbers, by name. */
  metrics(): Promise<Readonly<Record<string, number>>>;
  readonly agents: Agents;
  readonly ssh: Ssh;
  readonly gc: Gc;
  readonly workspaces: Workspaces;
  close(): Promise<void>;
}

/** Steps that take long enough to be shown: image pulls, first starts. */
export type Progress = (step: string) => void;

export interface Sandboxes {
  /** Makes and starts a sandbox; it is ready for execs when this resolves. */
  create(
    request: CreateSandbox,
    options?: { signal?: AbortSignal; onProgress?: Progress },
  ): Promise<CreatedSandbox>;
  get(sandbox: string): Promise<SandboxInfo>;
  /** Newest first. */
  list(filter?: SandboxFilter): Promise<readonly SandboxInfo[]>;
  start(sandbox: string, signal?: AbortSignal): Promise<SandboxInfo>;
  stop(sandbox: string, options?: { graceMs?: number; signal?: AbortSignal }): Promise<SandboxInfo>;
  /** Idempotent: ends what runs, removes the container and its files, keeps the evidence. */
  destroy(sandbox: string, signal?: AbortSignal): Promise<void>;
  /** Life from now on; 0 means no end. */
  setTtl(sandbox: string, ttlMs: number): Promise<SandboxInfo>;
  /** A new token for its sidecar API, of any profile; the one before opens nothing any more. */
  issueToken(sandbox: string, chosen?: string): Promise<SidecarAccess>;
  stats(sandbox: string): Promise<SandboxStats>;
}

export interface SandboxFilter {
  states?: readonly SandboxState[] | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  limit?: number | undefined;
  /** Cursor: only sandboxes created before the one with this id. */
  before?: string | undefined;
}

export interface ExecPage {
  limit?: number | undefined;
  /** Only execs started before the one with this id: the last of the page before. */
  before?: string | undefined;
}

export interface Execs {
  /** Resolves when the command has started. The same id twice returns the first exec. */
  start(sandbox: string, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo>;
  get(sandbox: string, execId: string): Promise<ExecInfo>;
  /** Newest first; at most 1000 unless fewer are asked for. */
  list(sandbox: string, page?: ExecPage): Promise<readonly ExecInfo[]>;
  /** Resolves when the exec has ended and its output is recorded; an abort stops waiting, not the command. */
  wait(sandbox: string, execId: string, signal?: AbortSignal): Promise<ExecInfo>;
  /** Recorded output from the given offsets, each byte exactly once. */
  output(
    sandbox: string,
    execId: string,
    range?: OutputRange,
    signal?: AbortSignal,
  ): AsyncIterable<OutputChunk>;
  /** Resolves when the sandbox has taken the bytes; a full pipe makes the caller wait. */
  writeStdin(sandbox: string, execId: string, data: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Resolves when all that was written has been read. */
  closeStdin(sandbox: string, execId: string, signal?: AbortSignal): Promise<void>;
  resize(sandbox: string, execId: string, size: TerminalSize): Promise<void>;
  /** To every descendant. With TERM, whatever still lives after the grace is killed. */
  kill(sandbox: string, execId: string, options?: { signal?: string; graceMs?: number }): Promise<void>;
}

export interface Files {
  read(sandbox: string, path: string, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  /** Makes missing parents; replaces the file in one step. */
  write(
    sandbox: string,
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: { mode?: number; signal?: AbortSignal },
  ): Promise<void>;
  stat(sandbox: string, path: string, signal?: AbortSignal): Promise<FileInfo>;
  list(
    sandbox: string,
    path: string,
    options?: { recursive?: boolean; signal?: AbortSignal },
  ): Promise<readonly FileInfo[]>;
  move(sandbox: string, from: string, to: string, signal?: AbortSignal): Promise<void>;
  /** Idempotent; directories with all they hold. */
  remove(sandbox: string, path: string, signal?: AbortSignal): Promise<void>;
  mkdir(sandbox: string, path: string, signal?: AbortSignal): Promise<void>;
  watch(sandbox: string, path: string, signal?: AbortSignal): AsyncIterable<FileEvent>;
  /** A tar stream of `path`; names in it are relative to `path`. */
  tarOut(sandbox: string, path: string, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  /** Extracts inside the sandbox, beneath `path`. */
  tarIn(
    sandbox: string,
    path: string,
    archive: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void>;
}

export interface Evidence {
  /** Also for sandboxes that are long destroyed. */
  read(sandboxId: string): AsyncIterable<EvidenceEntry>;
  /** All sandboxes with evidence when no id is given. */
  verify(sandboxId?: string): Promise<readonly EvidenceVerdict[]>;
}
