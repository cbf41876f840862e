/** JSON in a string, or the object itself. */
export type JsonField = string | Readonly<Record<string, unknown>>;

/** In every request: text that is empty and a number that is 0 mean what leaving the field out means. */
export interface SandboxCreateRequest {
  name?: string;
  image?: string;
  /** A language or stack that stands for an image; `image` comes first. */
  stack?: string;
  /** Which agent answers prompts and tasks. */
  agentIdentifier?: string;
  /** Texts, numbers and booleans become variables; anything else is left out. */
  envJson?: JsonField;
  /** Texts become labels; `snapshot_destination` says where snapshots go. */
  metadataJson?: JsonField;
  sshEnabled?: boolean;
  sshPublicKey?: string;
  webTerminalEnabled?: boolean;
  maxLifetimeSeconds?: number;
  idleTimeoutSeconds?: number;
  cpuCores?: number;
  memoryMb?: number;
  diskGb?: number;
  /** Made when empty. */
  sidecarToken?: string;
}

export interface SandboxIdRequest {
  sandboxId: string;
}

/** What every job that names a sidecar says. The address is a sidecar URL or a sandbox's id. */
export interface SidecarRequest {
  sidecarUrl: string;
  /** May be empty for the operator itself. */
  sidecarToken?: string;
}

export interface SandboxSnapshotRequest extends SidecarRequest {
  destination?: string;
  includeWorkspace?: boolean;
  includeState?: boolean;
}

export interface ExecJobRequest extends SidecarRequest {
  /** For the shell. */
  command: string;
  cwd?: string;
  envJson?: JsonField;
  timeoutMs?: number;
}

export interface PromptRequest extends SidecarRequest {
  message: string;
  sessionId?: string;
  model?: string;
  contextJson?: JsonField;
  timeoutMs?: number;
}

export interface TaskRequest extends SidecarRequest {
  prompt: string;
  sessionId?: string;
  maxTurns?: number;
  model?: string;
  contextJson?: JsonField;
  timeoutMs?: number;
}

/** A batch whose id the caller has chosen is run once, however often it is asked for. */
interface BatchRequest {
  batchId?: string;
}

export interface BatchCreateRequest extends BatchRequest {
  count: number;
  templateRequest?: SandboxCreateRequest;
  /** Addresses of the operators that share the work; nobody else when empty. */
  operators?: readonly string[];
  distribution?: "" | "round_robin" | "weighted" | "all";
}

export const AGGREGATIONS = ["all", "first", "majority"] as const;
export type Aggregation = (typeof AGGREGATIONS)[number];

export interface BatchTaskRequest extends BatchRequest {
  sidecarUrls: readonly string[];
  /** One for each address; none at all for the operator itself. */
  sidecarTokens?: readonly string[];
  prompt: string;
  sessionId?: string;
  maxTurns?: number;
  model?: string;
  contextJson?: JsonField;
  timeoutMs?: number;
  parallel?: boolean;
  aggregation?: "" | Aggregation;
}

export interface BatchExecRequest extends BatchRequest {
  sidecarUrls: readonly string[];
  sidecarTokens?: readonly string[];
  command: string;
  cwd?: string;
  envJson?: JsonField;
  timeoutMs?: number;
  parallel?: boolean;
}

export interface BatchCollectRequest {
  batchId: string;
}

export interface WorkflowCreateRequest {
  name?: string;
  workflowJson: string;
  triggerType?: "" | "manual" | "cron";
  triggerConfig?: string;
  sandboxConfigJson?: string;
}

export interface WorkflowControlRequest {
  workflowId: number;
}

export interface SshKeyRequest extends SidecarRequest {
  username?: string;
  publicKey: string;
}

/** A request as handlers get it: checked, every field there, JSON read. */
export type Parsed<Request> = {
  readonly [Field in keyof Request]-?: Field extends "envJson" | "metadataJson" | "contextJson"
    ? Readonly<Record<string, unknown>>
    : Field extends "templateRequest"
      ? Parsed<SandboxCreateRequest>
      : Exclude<Request[Field], undefined>;
};
