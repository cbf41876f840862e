import { AidoError } from "@aido/sdk/protocol";
import type { AgentRunClaim, AgentSession, AgentSessionStore } from "../../core/agent/agent-session-store.ts";

export class MemoryAgentSessions implements AgentSessionStore {
  readonly #sessions = new Map<string, AgentSession>();
  readonly #exists: (sandboxId: string) => boolean;

  constructor(exists: (sandboxId: string) => boolean) {
    this.#exists = exists;
  }

  async take(claim: AgentRunClaim, now: Date): Promise<{ taken: boolean; before: AgentSession | undefined }> {
    const { sandboxId, sessionId, agent, runId, until } = claim;
    if (!this.#exists(sandboxId)) {
      throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} does not exist`, {
        details: { id: sandboxId },
      });
    }
    const before = this.#find(sandboxId, sessionId);
    if (before?.runUntil !== undefined && before.runUntil > now) return { taken: false, before };
    const made = { sandboxId, sessionId, agent, reference: undefined };
    const session = { ...(before ?? made), runId, runUntil: until, usedAt: now };
    this.#sessions.set(keyOf(sandboxId, sessionId), session);
    return { taken: true, before };
  }

  async renew(claim: Pick<AgentRunClaim, "sandboxId" | "sessionId" | "runId" | "until">): Promise<boolean> {
    return this.#change(claim.sandboxId, claim.sessionId, claim.runId, { runUntil: claim.until });
  }

  async keepReference(sandboxId: string, sessionId: string, runId: string, reference: string): Promise<void> {
    this.#change(sandboxId, sessionId, runId, { reference });
  }

  async release(sandboxId: string, sessionId: string, runId: string, usedAt: Date): Promise<void> {
    this.#change(sandboxId, sessionId, runId, { runId: undefined, runUntil: undefined, usedAt });
  }

  async get(sandboxId: string, sessionId: string): Promise<AgentSession | undefined> {
    return this.#find(sandboxId, sessionId);
  }

  async list(sandboxId: string): Promise<readonly AgentSession[]> {
    return [...this.#sessions.values()]
      .filter((session) => session.sandboxId === sandboxId)
      .sort((a, b) => b.usedAt.getTime() - a.usedAt.getTime() || (a.sessionId < b.sessionId ? -1 : 1));
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.drop(sandboxId);
  }

  drop(sandboxId: string): void {
    for (const [key, session] of this.#sessions) {
      if (session.sandboxId === sandboxId) this.#sessions.delete(key);
    }
  }

  #find(sandboxId: string, sessionId: string): AgentSession | undefined {
    return structuredClone(this.#sessions.get(keyOf(sandboxId, sessionId)));
  }

  #change(sandboxId: string, sessionId: string, runId: string, patch: Partial<AgentSession>): boolean {
    const session = this.#sessions.get(keyOf(sandboxId, sessionId));
    if (session?.runId !== runId) return false;
    Object.assign(session, patch);
    return true;
  }
}

function keyOf(sandboxId: string, sessionId: string): string {
  return `${sandboxId}/${sessionId}`;
}
