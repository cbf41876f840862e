import type { AgentRequest } from "@aido/sdk/protocol";
import type { SidecarAgentBody } from "@aido/sdk/schemas";

/** The turns travel among the context, under either of two names; the rest of it is the agent's. */
export function toAgentRequest(body: SidecarAgentBody): AgentRequest {
  const { maxTurns, maxSteps, ...context } = body.metadata ?? {};
  return {
    message: body.message,
    identifier: body.identifier,
    sessionId: body.sessionId,
    maxTurns: maxTurns ?? maxSteps,
    model: body.backend?.model,
    context: Object.keys(context).length === 0 ? undefined : context,
    timeoutMs: body.timeout,
  };
}
