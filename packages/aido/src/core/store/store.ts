import type { ExecPage } from "@aido/sdk";
import type {
  EndReason,
  ErrorBody,
  ExecStatus,
  Isolation,
  Network,
  Permissions,
  ProfileName,
  ResourceLimits,
  RunStatus,
  SandboxState,
  Tier,
} from "@aido/sdk/protocol";
import type { AgentSessionStore } from "../agent/agent-session-store.ts";
import type { BatchStore } from "../batch/batch-store.ts";
import type { Mount } from "../driver/driver.ts";
import type { CounterStore, Counts, SandboxTotals } from "../metrics/counters.ts";
import type { SshKeyStore } from "../ssh/ssh-key-store.ts";
import type { TierFields } from "../tier/tier-fields.ts";
import type { WorkflowStore } from "../workflow/workflow-store.ts";
import type { WorkspaceStore } from "../workspace/workspace-store.ts";

/** Where records live. The driver is the truth about what runs, the store about what should. */
export interface Store {
  readonly sandboxes: SandboxStore;
  readonly execs: ExecStore;
  readonly runs: RunStore;
  readonly claims: ClaimStore;
  readonly agentSessions: AgentSessionStore;
  readonly leases: LeaseStore;
  readonly evidence: EvidenceHeads;
  readonly counters: CounterStore;
  readonly jobs: JobStore;
  readonly batches: BatchStore;
  readonly workflows: WorkflowStore;
  readonly sshKeys: SshKeyStore;
  readonly workspaces: WorkspaceStore;
  close(): Promise<void>;
}

export interface SandboxRecord extends TierFields {
  id: string;
  name: string | undefined;
  profile: ProfileName;
  image: string;
  driver: string;
  isolation: Isolation;
  state: SandboxState;
  endReason: EndReason | undefined;
  containerId: string | undefined;
  workdir: string;
  /** As asked for; resolved to numbers by the driver or the supervisor. */
  user: string | undefined;
  env: Readonly<Record<string, string>>;
  /** What the image of the current container sets; the sandbox's own variables go over it. */
  imageEnv: Readonly<Record<string, string>>;
  network: Network;
  limits: ResourceLimits;
  privileged: boolean;
  history: boolean;
  permissions: Permissions | undefined;
  labels: Readonly<Record<string, string>>;
  /** Directories and files of aido's own that every container of this sandbox gets. */
  mounts: readonly Mount[];
  /** 0 means no end. */
  ttlMs: number;
  /** Stopped when nobody has used it for so long; 0 means never. */
  idleTimeoutMs: number;
  /** Started again when it is stopped and somebody uses it. */
  autoResume: boolean;
  /** Right to some seconds: not every use is written down at once. */
  lastActivityAt: Date;
  /** Shared with the supervisor only: 32 random bytes, hex. */
  supervisorToken: string;
  /** SHA-256 of its sidecar API's token, hex; undefined when it has no such API. */
  tokenHash: string | undefined;
  createdAt: Date;
  startedAt: Date | undefined;
  /** While it runs: since when somebody is at stopping it. */
  stoppedAt: Date | undefined;
  expiresAt: Date | undefined;
}

/** What may change besides the state itself. A key that is present with `undefined` is cleared. */
export type SandboxPatch = Partial<
  Pick<
    SandboxRecord,
    | "containerId"
    | "endReason"
    | "startedAt"
    | "stoppedAt"
    | "expiresAt"
    | "ttlMs"
    | "lastActivityAt"
    | "labels"
    | "name"
    | "env"
    | "imageEnv"
    | "workdir"
    | "network"
    | "privileged"
    | "mounts"
    | "supervisorToken"
    | "tokenHash"
    | keyof TierFields
  >
>;

export interface SandboxQuery {
  /** Every state but `deleted` when absent. */
  states?: readonly SandboxState[] | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  limit?: number | undefined;
  /** Only sandboxes inserted before the one with this id; nothing when there is no such sandbox. */
  before?: string | undefined;
}

export interface DemotionQuery {
  tier: Tier;
  /** In the tier since then or longer. */
  since: Date;
  /** Only sandboxes that name a destination of their own for snapshots. */
  ownDestination?: boolean | undefined;
  /** Only those that come after this one. */
  after?: Pick<SandboxRecord, "id" | "tierSince"> | undefined;
  limit: number;
}

export interface OwnerUse {
  sandboxes: number;
  cpus: number;
  memoryBytes: number;
}

export interface SandboxStore {
  /**
   * Raises CONTAINER_NAME_TAKEN when the id is in use, or the name by another sandbox of the same owner; a deleted
   * sandbox frees its name, never its id.
   */
  insert(record: SandboxRecord): Promise<void>;
  /** Deleted ones too. */
  get(id: string): Promise<SandboxRecord | undefined>;
  /**
   * Deleted ones excepted: the one with this id, else those with this name, by owner and the local user's own
   * first, else those whose id begins so (at least 2 characters). At most `limit` matches; with an owner, only among that owner's.
   */
  find(reference: string, limit: number, owner?: string): Promise<readonly SandboxRecord[]>;
  /** Newest first. */
  list(query?: SandboxQuery): Promise<readonly SandboxRecord[]>;
  /** Moves state only if it is still one of `from`, and then counts; false means someone else moved it first. */
  transition(
    id: string,
    from: SandboxState | readonly SandboxState[],
    to: SandboxState,
    patch?: SandboxPatch,
    counts?: Counts,
  ): Promise<boolean>;
  /** Counts only when there is such a sandbox. */
  update(id: string, patch: SandboxPatch, counts?: Counts): Promise<void>;
  /** Running or stopped sandboxes whose `expiresAt` is not after `now`; cost grows with what is due. */
  due(now: Date, limit: number): Promise<readonly SandboxRecord[]>;
  /** Those that have been in their tier longest first, deleted ones too; cost grows with what is due. */
  dueForDemotion(query: DemotionQuery): Promise<readonly SandboxRecord[]>;
  /** Of what runs now; cost grows with that. */
  totals(): Promise<SandboxTotals>;
  /** What those with this owner's label come to: all that are not deleted, and the limits of what is pending or runs. */
  usedBy(owner: string): Promise<OwnerUse>;
  /** Forgets the record and all that hangs on it, except its evidence. Counts only when there was one. */
  remove(id: string, counts?: Counts): Promise<void>;
  /** Running sandboxes unused for their `idleTimeoutMs`, those that have been so longest first; cost grows with what is due. */
  idleSince(now: Date, limit: number): Promise<readonly SandboxRecord[]>;
  /** They were used then. Only running ones, and never back in time. */
  touch(ids: readonly string[], at: Date): Promise<void>;
  /** Every running sandbox that may become idle counts as used then, whatever was known before. */
  touchAll(at: Date): Promise<void>;
}

export interface ExecRecord {
  id: string;
  sandboxId: string;
  argv: readonly string[];
  status: ExecStatus;
  exitCode: number | undefined;
  signal: string | undefined;
  /** Why the program could not be started: the answer whenever it is asked for again. */
  startError: ErrorBody["error"] | undefined;
  /** Of what its caller asked for; undefined when it gave none. */
  fingerprint: string | undefined;
  startedAt: Date;
  endedAt: Date | undefined;
  stdoutBytes: number;
  stderrBytes: number;
  /** What it changes in the workspace is to become history. Taken back some time after it has: the history itself knows. */
  unrecorded: boolean;
}

export interface ExecStore {
  /** False when the exec exists already; raises CONTAINER_NOT_FOUND when there is no such sandbox. */
  insert(record: ExecRecord): Promise<boolean>;
  get(sandboxId: string, execId: string): Promise<ExecRecord | undefined>;
  /** Newest first; 1000 when no limit is given. Only those before the exec `before`, none when there is no such. */
  list(sandboxId: string, page?: ExecPage): Promise<readonly ExecRecord[]>;
  running(sandboxId: string): Promise<readonly ExecRecord[]>;
  /** Those that are still marked as such, oldest first. */
  unrecorded(sandboxId: string): Promise<readonly ExecRecord[]>;
  /** They are not to be told as unrecorded any more; those that are gone are passed over. */
  markRecorded(execs: readonly Pick<ExecRecord, "sandboxId" | "id">[]): Promise<void>;
  /** Of all sandboxes; cost grows with what runs. */
  countRunning(): Promise<number>;
  /** When the last of those that have ended did. */
  lastEnd(sandboxId: string): Promise<Date | undefined>;
  /** Only an exec that is still running can end; false otherwise. */
  end(sandboxId: string, execId: string, end: ExecEnd): Promise<boolean>;
  removeAll(sandboxId: string): Promise<void>;
}

export interface ExecEnd {
  status: Exclude<ExecStatus, "running">;
  exitCode: number | undefined;
  signal: string | undefined;
  startError?: ErrorBody["error"] | undefined;
  endedAt: Date;
  stdoutBytes: number;
  stderrBytes: number;
  /** It has changed nothing that could be recorded. */
  unrecorded?: false;
}

export interface RunRow {
  sandboxId: string;
  status: RunStatus;
  task: string;
  execId: string | undefined;
  autoDestroy: boolean;
  startedAt: Date | undefined;
  completedAt: Date | undefined;
}

export interface RunStore {
  put(run: RunRow): Promise<void>;
  get(sandboxId: string): Promise<RunRow | undefined>;
  /** Moves status only if it is still `from`. */
  transition(sandboxId: string, from: RunStatus, to: RunStatus, patch?: Partial<RunRow>): Promise<boolean>;
  remove(sandboxId: string): Promise<void>;
}

/** A job that somebody is at. */
export interface RunningJob {
  id: string;
  /** Its number; see the table of jobs in the SDK. */
  job: number;
  /** Names the process; see core/process-identity.ts. */
  holder: string;
  startedAt: Date;
}

/** Jobs that run, so that each is counted once, also one whose process has died. */
export interface JobStore {
  begin(job: RunningJob): Promise<void>;
  /** Counts in the same step; false, and nothing is counted, when it has been ended already. */
  end(id: string, counts: Counts): Promise<boolean>;
  list(): Promise<readonly RunningJob[]>;
}

/**
 * What a process is doing to a sandbox in several steps, and what that counts as for whoever has to finish it: `idle` is a
 * stop for want of use, `expire` and `collect` are the ends that a lifetime and a retention bring.
 */
export type ClaimPurpose =
  | "create"
  | "launch"
  | "stop"
  | "idle"
  | "demote"
  | "destroy"
  | "expire"
  | "collect";

export interface Claim {
  sandboxId: string;
  /** Names the process; see core/process-identity.ts. */
  holder: string;
  purpose: ClaimPurpose;
  /** After this the claim binds nobody: its holder is dead or has hung. */
  until: Date;
}

/**
 * Who may change a sandbox in several steps, one at a time. A claim that outlives its holder is not erased: it
 * tells the reconciler what was left half done.
 */
export interface ClaimStore {
  /** Undefined when taken; otherwise the claim that stands in the way: not expired at `now`, not the `replacing` one. */
  take(claim: Claim, now: Date, replacing?: Claim): Promise<Claim | undefined>;
  /** Only the holder's own; false when it has lost it. */
  renew(sandboxId: string, holder: string, until: Date): Promise<boolean>;
  /** Only the holder's own. */
  release(sandboxId: string, holder: string): Promise<void>;
  get(sandboxId: string): Promise<Claim | undefined>;
  list(): Promise<readonly Claim[]>;
}

/**
 * Who does a named piece of work now, one process of all that share the store. Whoever asks for a name asks for the
 * same length of time, so a lease that ends later than a new one would was taken before the clock went back, and binds
 * nobody.
 */
export interface LeaseStore {
  /** False while it is another holder's at `now`; one's own is taken anew. */
  take(name: string, holder: string, until: Date, now: Date): Promise<boolean>;
  /** Only the holder's own; false when it has lost it. */
  renew(name: string, holder: string, until: Date): Promise<boolean>;
  /** Only the holder's own. */
  release(name: string, holder: string): Promise<void>;
  /** Undefined when nobody has it. */
  endOf(name: string): Promise<Date | undefined>;
  /** Those that have ended before. */
  forgetEnded(before: Date): Promise<void>;
}

/** The end of one sandbox's evidence as it was when the last entry was written. */
export interface EvidenceHead {
  seq: number;
  hash: string;
  /** Length of the log in bytes. */
  bytes: number;
}

/** Kept for good: also the evidence of destroyed sandboxes is verified against it. */
export interface EvidenceHeads {
  get(sandboxId: string): Promise<EvidenceHead | undefined>;
  /**
   * Runs `append` with the present head while no other process can, and keeps the head it returns. When `append`
   * throws, or this process dies before the end, the head stays as it was.
   */
  advance(
    sandboxId: string,
    append: (head: EvidenceHead | undefined) => EvidenceHead | undefined,
  ): Promise<void>;
  ids(): Promise<readonly string[]>;
}
