import type {
  EndReason,
  ExecStatus,
  Isolation,
  Network,
  ProfileName,
  ResourceLimits,
  RunStatus,
  SandboxState,
} from "@aido/sdk/protocol";

/** Where records live. The driver is the truth about what runs, the store about what should. */
export interface Store {
  readonly sandboxes: SandboxStore;
  readonly execs: ExecStore;
  readonly runs: RunStore;
  close(): Promise<void>;
}

export interface SandboxRecord {
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
  network: Network;
  limits: ResourceLimits;
  privileged: boolean;
  history: boolean;
  labels: Readonly<Record<string, string>>;
  /** 0 means no end. */
  ttlMs: number;
  /** Shared with the supervisor only: 32 random bytes, hex. */
  supervisorToken: string;
  createdAt: Date;
  startedAt: Date | undefined;
  stoppedAt: Date | undefined;
  expiresAt: Date | undefined;
}

/** What may change besides the state itself. */
export type SandboxPatch = Partial<
  Pick<
    SandboxRecord,
    | "containerId"
    | "endReason"
    | "startedAt"
    | "stoppedAt"
    | "expiresAt"
    | "ttlMs"
    | "labels"
    | "name"
    | "env"
    | "workdir"
  >
>;

export interface SandboxQuery {
  states?: readonly SandboxState[] | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  limit?: number | undefined;
  before?: string | undefined;
}

export interface SandboxStore {
  /** Raises CONTAINER_NAME_TAKEN when the name is in use by a sandbox that is not deleted. */
  insert(record: SandboxRecord): Promise<void>;
  get(id: string): Promise<SandboxRecord | undefined>;
  /** By id, unique id prefix (at least 2 characters) or name, deleted ones excepted. At most `limit` matches. */
  find(reference: string, limit: number): Promise<readonly SandboxRecord[]>;
  /** Newest first. */
  list(query?: SandboxQuery): Promise<readonly SandboxRecord[]>;
  /** Moves state only if it is still one of `from`; false means someone else moved it first. */
  transition(
    id: string,
    from: SandboxState | readonly SandboxState[],
    to: SandboxState,
    patch?: SandboxPatch,
  ): Promise<boolean>;
  update(id: string, patch: SandboxPatch): Promise<void>;
  /** Running or stopped sandboxes whose `expiresAt` is not after `now`; cost grows with what is due. */
  due(now: Date, limit: number): Promise<readonly SandboxRecord[]>;
  remove(id: string): Promise<void>;
}

export interface ExecRecord {
  id: string;
  sandboxId: string;
  argv: readonly string[];
  status: ExecStatus;
  exitCode: number | undefined;
  signal: string | undefined;
  startedAt: Date;
  endedAt: Date | undefined;
  stdoutBytes: number;
  stderrBytes: number;
}

export interface ExecStore {
  /** False when the exec exists already. */
  insert(record: ExecRecord): Promise<boolean>;
  get(sandboxId: string, execId: string): Promise<ExecRecord | undefined>;
  /** Newest first. */
  list(sandboxId: string, limit?: number): Promise<readonly ExecRecord[]>;
  running(sandboxId: string): Promise<readonly ExecRecord[]>;
  /** Only an exec that is still running can end; false otherwise. */
  end(sandboxId: string, execId: string, end: ExecEnd): Promise<boolean>;
  removeAll(sandboxId: string): Promise<void>;
}

export interface ExecEnd {
  status: Exclude<ExecStatus, "running">;
  exitCode: number | undefined;
  signal: string | undefined;
  endedAt: Date;
  stdoutBytes: number;
  stderrBytes: number;
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
