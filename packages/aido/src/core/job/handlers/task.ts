import { askAgent } from "../ask-agent.ts";
import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobAgents, JobHandler } from "../job-handler.ts";

type Deps = Pick<HandlerDeps, "tokens" | "activity"> & { agents: JobAgents };

/** Several turns; the answer names the session in which the agent goes on. */
export function task(deps: Deps): JobHandler<"TASK"> {
  return async (request, context) => {
    const { id } = await findSidecar(deps, context, request);
    return await askAgent(deps, id, request, context);
  };
}
