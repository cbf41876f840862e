import type { StoryStatus } from "../tasks/task-file.ts";

/** Longest message in bytes, without the newline that ends it. */
export const MAX_MESSAGE_BYTES = 64 * 1024;

/** Codes an `error` message commonly has; others of the same form are allowed. */
export const STANDARD_ERROR_CODES = [
  "CONTAINER_OOM",
  "CONTAINER_TIMEOUT",
  "GIT_CLONE_FAILED",
  "GIT_CHECKOUT_FAILED",
  "TASK_FILE_NOT_FOUND",
  "TASK_FILE_INVALID",
  "ACP_CONNECTION_LOST",
  "AGENT_CRASH",
  "UNKNOWN_ERROR",
  "MISSING_ENV_VAR",
  "INVALID_INPUT",
] as const;
export type StandardErrorCode = (typeof STANDARD_ERROR_CODES)[number];

export const COMPLETION_STATUSES = ["completed", "failed", "stopped"] as const;
export type CompletionStatus = (typeof COMPLETION_STATUSES)[number];

/** What the adapter puts where its environment does not say. */
export const UNKNOWN_SWARM_ID = "00000000-0000-0000-0000-000000000000";
export const UNKNOWN_CONTAINER_ID = "unknown";
/** Progress of the agent as a whole rather than of a story. */
export const AGENT_STORY_ID = "US-000";

interface Envelope<Type extends string, Payload> {
  readonly type: Type;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly swarmId: string;
  readonly containerId: string;
  readonly payload: Payload;
}

/** Host to container, once, at its start. */
export type TaskRequest = Envelope<
  "task-request",
  {
    readonly taskFilePath: string;
    readonly branchName: string;
    readonly repoUrl: string;
    readonly envVars: Readonly<Record<string, string>>;
  }
>;

/** What the agents of a worker have used in all, by their own count. */
export interface AgentUsage {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Container to host, at each change of a story; as `US-000` also for what the agent says meanwhile. */
export type ProgressUpdate = Envelope<
  "progress-update",
  {
    readonly storyId: string;
    readonly status: StoryStatus;
    readonly output: string;
    /** Beyond what other tools send: those that do not know it pass over it. */
    readonly usage?: AgentUsage | undefined;
    /** Paths that differ from where the branch began and were not told before. */
    readonly changedFiles?: readonly string[] | undefined;
  }
>;

/** Container to host, the last one: all stories were gone through, or the work was ended. */
export type Completion = Envelope<
  "completion",
  { readonly status: CompletionStatus; readonly prUrl: string | null; readonly errors: readonly string[] }
>;

/** Container to host, the last one: the container cannot go on. */
export type ErrorMessage = Envelope<"error", { readonly code: string; readonly message: string }>;

export type WorkerMessage = ProgressUpdate | Completion | ErrorMessage;
export type SwarmMessage = TaskRequest | WorkerMessage;

export function isFinal(message: SwarmMessage): message is Completion | ErrorMessage {
  return message.type === "completion" || message.type === "error";
}
