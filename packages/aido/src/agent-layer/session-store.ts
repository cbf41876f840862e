import type { AgentMessage } from "./model-client.ts";

export const SESSION_STATUSES = ["active", "completed", "failed"] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export interface Session {
  id: string;
  createdAt: Date;
  status: SessionStatus;
  task: string;
}

export interface StoredMessage extends AgentMessage {
  sequence: number;
  tokenCount: number;
  /** Replaced by a summary; kept for the record, no longer sent to the model. */
  isCompacted: boolean;
}

export interface CompactionEvent {
  round: number;
  createdAt: Date;
  tokensBefore: number;
  tokensAfter: number;
  summaryContent: string;
}

/** Where sessions and their messages are kept, so that what an agent did can be read after it ended. */
export interface SessionStore {
  createSession(task: string): Promise<Session>;
  updateSessionStatus(id: string, status: SessionStatus): Promise<void>;
  getSession(id: string): Promise<Session | undefined>;
  appendMessage(sessionId: string, message: AgentMessage, tokenCount: number): Promise<StoredMessage>;
  /** In order; compacted ones only when asked for. */
  listMessages(
    sessionId: string,
    options?: { includeCompacted?: boolean },
  ): Promise<readonly StoredMessage[]>;
  /** One step: the given messages become compacted and the summary takes the place of the first of them. */
  compact(
    sessionId: string,
    sequences: readonly number[],
    summary: { content: string; tokenCount: number },
    event: { tokensBefore: number; tokensAfter: number },
  ): Promise<void>;
  listCompactions(sessionId: string): Promise<readonly CompactionEvent[]>;
  close(): Promise<void>;
}
