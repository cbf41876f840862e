import { AidoError } from "@aido/sdk/protocol";
import { type AgentDeps, type AgentResult, runAgent } from "./run-agent.ts";

export interface SessionResult extends AgentResult {
  sessionId: string;
}

/** One task from start to clean-up: the container goes away however it ends, the session's record stays. */
export async function runSession(
  deps: AgentDeps,
  task: string,
  signal?: AbortSignal,
): Promise<SessionResult> {
  if (task.trim() === "") {
    throw new AidoError("VALIDATION_ERROR", "The task is empty", { hint: "Say what the agent should do." });
  }
  const session = await deps.store.createSession(task);
  let containerId: string | undefined;
  try {
    containerId = await deps.layer.startContainer(session.id, signal);
    const result = await runAgent(deps, session, containerId, signal);
    await deps.store.updateSessionStatus(session.id, "completed");
    return { ...result, sessionId: session.id };
  } catch (thrown) {
    await deps.store.updateSessionStatus(session.id, "failed");
    throw thrown;
  } finally {
    if (containerId !== undefined) await deps.layer.cleanupContainer(containerId);
  }
}
