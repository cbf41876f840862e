import type { AgentEvent, AgentKind, AgentUsage, ExecInfo } from "@aido/sdk/protocol";

/** Words with `{placeholders}`; a list within is left out as a whole when one of its placeholders is empty. */
export type AgentArgv = readonly (string | readonly string[])[];

/** An agent as the settings describe it. */
export interface AgentDefinition {
  readonly identifier: string;
  readonly kind: AgentKind;
  readonly displayName: string;
  readonly description: string;
  readonly argv: AgentArgv;
  readonly env: Readonly<Record<string, string>>;
  /** What is answered when it asks whether it may use a tool. The sandbox is the limit, so `allow` is usual. */
  readonly permissions: "allow" | "deny";
}

/** One message to one agent, checked. */
export interface AgentTurn {
  readonly agent: AgentDefinition;
  readonly message: string;
  readonly model: string | undefined;
  readonly maxTurns: number | undefined;
  readonly context: Readonly<Record<string, unknown>> | undefined;
  readonly sessionId: string;
  /** What the agent calls the session since an earlier run; undefined in its first. */
  readonly reference: string | undefined;
}

export interface AgentCommand {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How long it may take to end by itself when the run is stopped; then it is killed. */
  readonly graceMs?: number;
}

/** A process of an agent. What it writes is hostile; it is bounded here, once for all adapters. */
export interface AgentProcess {
  /** Ends with the process. Raises PAYLOAD_TOO_LARGE when there is more than any agent has to say. One reader. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** Waits while the agent does not read; fails when it has ended. */
  write(text: string): Promise<void>;
  closeStdin(): Promise<void>;
  /** When all its output was read and it has ended; raises what kept it from ending well. */
  succeeded(): Promise<void>;
  ended(): Promise<ExecInfo>;
  /** It and all it has started. */
  kill(graceMs?: number): Promise<void>;
}

/** What an adapter may use: the sandbox's commands, and who listens. */
export interface AgentPlace {
  readonly workdir: string;
  /** Aborted when the run is cancelled or its time is up. */
  readonly signal: AbortSignal;
  /** Raises AGENT_UNAVAILABLE when the sandbox has no such program. */
  start(command: AgentCommand): Promise<AgentProcess>;
  emit(event: Extract<AgentEvent, { type: "text" | "toolCall" | "usage" }>): Promise<void>;
  /** The agent's model has answered once more. */
  countTurn(): void;
  /** Kept at once, so that the session survives whatever happens to this process. */
  keepReference(reference: string): Promise<void>;
}

export const TURNS_USED_UP = "The agent used up its turns before it was done";

export interface AgentOutcome {
  readonly success: boolean;
  /** All text of the run when absent. */
  readonly response?: string | undefined;
  readonly error?: string | undefined;
  readonly usage?: AgentUsage | undefined;
}

/** One way to speak to agents. Raises AGENT_FAILED when the agent did not do its part. */
export interface AgentAdapter {
  run(turn: AgentTurn, place: AgentPlace): Promise<AgentOutcome>;
}
