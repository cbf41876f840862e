import type { Agents, Aido } from "@aido/sdk";
import type { Operation } from "../operation.ts";
import type { SandboxLookup } from "../ownership.ts";
import { agentRoutes } from "./agent-routes.ts";
import { commandRoutes } from "./command-routes.ts";
import { fileRoutes } from "./file-routes.ts";
import { healthRoutes } from "./health-routes.ts";
import { terminalRoutes } from "./terminal-routes.ts";

export interface SidecarDeps {
  aido: Aido;
  /** What need not be asked of the engine. */
  known: SandboxLookup;
  agents: Agents;
  maxBodyBytes: number;
  /** Ids of the execs that the store takes for running. */
  runningExecs: (sandboxId: string) => Promise<readonly string[]>;
}

/** One sandbox as its own small server: what is below `/sidecar/<id>` is opened by its token alone. */
export function sidecarRoutes(deps: SidecarDeps): Operation[] {
  return [
    ...healthRoutes(deps),
    ...commandRoutes(deps.aido),
    ...terminalRoutes(deps),
    ...fileRoutes(deps),
    ...agentRoutes(deps.agents),
  ];
}
