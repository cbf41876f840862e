import type { AgentAdapter, AgentDefinition } from "../../core/agent/agent-adapter.ts";
import type { AdapterOptions, WorkerAgent } from "../../core/swarm/messages/adapter-environment.ts";

export interface ChosenAgent {
  readonly definition: AgentDefinition;
  readonly adapter: AgentAdapter;
}

const ADAPTERS: Readonly<Record<WorkerAgent, () => Promise<AgentAdapter>>> = {
  claude: async () => new (await import("../../agents/claude/claude-adapter.ts")).ClaudeAdapter(),
  acp: async () => new (await import("../../agents/acp/acp-adapter.ts")).AcpAdapter(),
  command: async () => new (await import("../../agents/command/command-adapter.ts")).CommandAdapter(),
};

/** The agent that the environment names. The container is the limit, so it may do what it asks for. */
export async function chooseAgent({ agent, argv }: AdapterOptions): Promise<ChosenAgent> {
  const definition: AgentDefinition = {
    identifier: agent,
    kind: agent,
    displayName: agent,
    description: "",
    argv: argv ?? ["claude"],
    env: {},
    permissions: "allow",
  };
  return { definition, adapter: await ADAPTERS[agent]() };
}
