/** What an agent remembers under a name that the caller knows. */
export interface AgentSession {
  sandboxId: string;
  sessionId: string;
  /** Identifier of the agent whose session it is. */
  agent: string;
  /** The agent's own name for it; undefined until the agent has told one. */
  reference: string | undefined;
  /** The run that has it now, or that died with it. */
  runId: string | undefined;
  /** After this the run binds nobody: its process is dead or has hung. */
  runUntil: Date | undefined;
  usedAt: Date;
}

export interface AgentRunClaim {
  sandboxId: string;
  sessionId: string;
  agent: string;
  runId: string;
  until: Date;
}

/** Sessions of agents, and which run has each: one at a time, over all processes of a store. */
export interface AgentSessionStore {
  /**
   * Takes a session for a run, and makes it when there is none. `before` is how it was; with `taken` false another
   * run has it and nothing changes. Raises CONTAINER_NOT_FOUND when there is no such sandbox.
   */
  take(claim: AgentRunClaim, now: Date): Promise<{ taken: boolean; before: AgentSession | undefined }>;
  /** Only the run's own session; false when the run has lost it. */
  renew(claim: Pick<AgentRunClaim, "sandboxId" | "sessionId" | "runId" | "until">): Promise<boolean>;
  /** Only the run's own session. */
  keepReference(sandboxId: string, sessionId: string, runId: string, reference: string): Promise<void>;
  /** Only the run's own session; whatever it remembers stays. */
  release(sandboxId: string, sessionId: string, runId: string, usedAt: Date): Promise<void>;
  get(sandboxId: string, sessionId: string): Promise<AgentSession | undefined>;
  /** Last used first. */
  list(sandboxId: string): Promise<readonly AgentSession[]>;
  removeAll(sandboxId: string): Promise<void>;
}
