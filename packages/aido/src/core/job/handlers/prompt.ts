import { askAgent } from "../ask-agent.ts";
import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobAgents, JobHandler } from "../job-handler.ts";

type Deps = Pick<HandlerDeps, "tokens" | "activity"> & { agents: JobAgents };

/** One turn: the agent's own limit of turns holds. */
export function prompt(deps: Deps): JobHandler<"PROMPT"> {
  return async (request, context) => {
    const { id } = await findSidecar(deps, context, request);
    const asked = { ...request, prompt: request.message, maxTurns: 0 };
    const { result, sessionId: _, ...rest } = await askAgent(deps, id, asked, context);
    return { ...rest, response: result };
  };
}
