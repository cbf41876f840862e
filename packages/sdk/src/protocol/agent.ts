import type { ErrorCode } from "./errors.ts";

/** How aido speaks to an agent: any command, Claude Code's own output, or the Agent Client Protocol. */
export const AGENT_KINDS = ["command", "claude", "acp"] as const;
export type AgentKind = (typeof AGENT_KINDS)[number];

/** Stands for whichever agent the session, the sandbox or the settings name. */
export const DEFAULT_AGENT = "default";

export interface AgentInfo {
  identifier: string;
  displayName: string;
  description: string;
  kind: AgentKind;
  /** Whether it is the one that `default` stands for. */
  isDefault: boolean;
}

/** Empty texts and zeros mean the same as nothing. */
export interface AgentRequest {
  message: string;
  /** `default` when absent. */
  identifier?: string | undefined;
  /** An earlier run's, to go on where it ended; any other text begins a session of that name. */
  sessionId?: string | undefined;
  /** Most times the agent may ask its model; no limit when absent. */
  maxTurns?: number | undefined;
  model?: string | undefined;
  /** What the agent is told besides the message. */
  context?: Readonly<Record<string, unknown>> | undefined;
  /** For the whole run; half an hour when absent. */
  timeoutMs?: number | undefined;
}

export interface AgentUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface AgentResult {
  success: boolean;
  /** What the agent said last, or all that a plain command wrote. From the sandbox: no terminal may get it raw. */
  response: string;
  error: string | undefined;
  errorCode: ErrorCode | undefined;
  /** Names this one run; in the evidence and in the ids of its execs. */
  traceId: string;
  durationMs: number;
  usage: AgentUsage;
  sessionId: string;
}

/** What happens in a run, in order: `start` first, `result` last, `error` right before it when it failed. */
export type AgentEvent =
  | { type: "start"; identifier: string; sessionId: string; traceId: string }
  /** `text` goes after what the part of this id had so far. */
  | { type: "text"; id: string; text: string }
  | {
      type: "toolCall";
      id: string;
      name: string;
      status: "running" | "done" | "failed";
      /** Left out when it is large. */
      input?: unknown;
    }
  | { type: "usage"; usage: AgentUsage }
  | { type: "error"; code: ErrorCode; message: string }
  | { type: "result"; result: AgentResult };
