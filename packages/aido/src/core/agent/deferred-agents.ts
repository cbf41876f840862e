import { type AgentRunOptions, type Agents, streamAgent } from "@aido/sdk";
import type { AgentEvent, AgentInfo, AgentRequest, AgentResult } from "@aido/sdk/protocol";
import type { AgentRunner } from "./agent-runner.ts";

/** Agents that are made when somebody first asks for one: few commands do. */
export class DeferredAgents implements Agents {
  readonly #open: () => Promise<AgentRunner>;
  #opened: Promise<AgentRunner> | undefined;

  constructor(open: () => Promise<AgentRunner>) {
    this.#open = open;
  }

  async list(): Promise<readonly AgentInfo[]> {
    return (await this.#runner()).list();
  }

  async run(sandbox: string, request: AgentRequest, options?: AgentRunOptions): Promise<AgentResult> {
    return (await this.#runner()).run(sandbox, request, options);
  }

  stream(sandbox: string, request: AgentRequest, signal?: AbortSignal): AsyncIterable<AgentEvent> {
    return streamAgent(this, sandbox, request, signal);
  }

  async cancel(sandbox: string, sessionId?: string): Promise<number> {
    return (await this.#runner()).cancel(sandbox, sessionId);
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }

  #runner(): Promise<AgentRunner> {
    this.#opened ??= this.#open();
    return this.#opened;
  }
}
