import { type AgentInfo, type AgentKind, AidoError, DEFAULT_AGENT } from "@aido/sdk/protocol";
import type { AgentAdapter, AgentDefinition } from "./agent-adapter.ts";

export interface AgentRegistryOptions {
  definitions: readonly AgentDefinition[];
  /** What `default` stands for when neither the session nor the sandbox says. */
  defaultAgent: string;
  /** Each is loaded when an agent of its kind is first run. */
  adapters: Readonly<Record<AgentKind, () => Promise<AgentAdapter>>>;
}

/** The agents there are, by identifier. */
export class AgentRegistry {
  readonly #agents: ReadonlyMap<string, AgentDefinition>;
  readonly #options: AgentRegistryOptions;

  constructor(options: AgentRegistryOptions) {
    this.#options = options;
    this.#agents = new Map(options.definitions.map((agent) => [agent.identifier, agent]));
  }

  list(): readonly AgentInfo[] {
    const standing = this.#standingFor([]);
    return [...this.#agents.values()].map(({ identifier, displayName, description, kind }) => ({
      identifier,
      displayName,
      description,
      kind,
      isDefault: identifier === standing,
    }));
  }

  /** Of several names the first that says something. Raises AGENT_NOT_FOUND. */
  choose(names: readonly (string | undefined)[]): AgentDefinition {
    const identifier = this.#standingFor(names);
    const agent = this.#agents.get(identifier);
    if (agent !== undefined) return agent;
    throw new AidoError("AGENT_NOT_FOUND", `There is no agent ${JSON.stringify(identifier.slice(0, 100))}`, {
      hint: `There are ${[...this.#agents.keys()].join(", ")}. The setting \`agents\` describes more.`,
      details: { identifier: identifier.slice(0, 100) },
    });
  }

  adapterFor(agent: AgentDefinition): Promise<AgentAdapter> {
    return this.#options.adapters[agent.kind]();
  }

  #standingFor(names: readonly (string | undefined)[]): string {
    const named = names.find((name) => name !== undefined && name !== "" && name !== DEFAULT_AGENT);
    if (named !== undefined) return named;
    return this.#agents.has(DEFAULT_AGENT) ? DEFAULT_AGENT : this.#options.defaultAgent;
  }
}
