import type { AgentSetting } from "../config/agent-settings.ts";
import type { Config } from "../config/config.ts";
import type { AgentDefinition } from "../core/agent/agent-adapter.ts";
import { AgentRegistry } from "../core/agent/agent-registry.ts";
import { AgentRunner, type AgentRunnerDeps } from "../core/agent/agent-runner.ts";
import { KNOWN_AGENTS } from "../core/agent/known-agents.ts";

/** Agents on the services they use. */
export function openAgents(config: Config, deps: Omit<AgentRunnerDeps, "registry">): AgentRunner {
  return new AgentRunner({ ...deps, registry: agentRegistry(config) });
}

/** The agents that aido knows, and those of the settings over them. */
function agentRegistry(config: Pick<Config, "agents" | "defaultAgent">): AgentRegistry {
  const own = Object.entries(config.agents ?? {}).map(([identifier, agent]) =>
    toDefinition(identifier, agent),
  );
  const names = new Set(own.map(({ identifier }) => identifier));
  return new AgentRegistry({
    definitions: [...own, ...KNOWN_AGENTS.filter(({ identifier }) => !names.has(identifier))],
    defaultAgent: config.defaultAgent,
    adapters: {
      command: async () => new (await import("../agents/command/command-adapter.ts")).CommandAdapter(),
      claude: async () => new (await import("../agents/claude/claude-adapter.ts")).ClaudeAdapter(),
      acp: async () => new (await import("../agents/acp/acp-adapter.ts")).AcpAdapter(),
    },
  });
}

function toDefinition(identifier: string, agent: AgentSetting): AgentDefinition {
  return {
    identifier,
    kind: agent.kind,
    argv: agent.argv ?? ["claude"],
    env: Object.fromEntries(Object.entries(agent.env).map(([name, value]) => [name, value.reveal()])),
    displayName: agent.displayName ?? identifier,
    description: agent.description ?? "",
    permissions: agent.permissions,
  };
}
