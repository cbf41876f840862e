import { type AgentRunOptions, type Agents, streamAgent } from "../agents.ts";
import type { AgentEvent, AgentInfo, AgentRequest, AgentResult, ErrorBody } from "../protocol/index.ts";
import { lostServer } from "./lost-server.ts";
import { errorFromBody } from "./server-error.ts";
import { serverEvents } from "./server-events.ts";
import type { Transport } from "./transport.ts";

const at = (sandbox: string, verb: string): string =>
  `/api/sandbox/${encodeURIComponent(sandbox)}/agents/${verb}`;

export class HttpAgents implements Agents {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(): Promise<readonly AgentInfo[]> {
    return (await this.#transport.json<{ agents: AgentInfo[] }>("/api/agents", { repeatable: true })).agents;
  }

  /** By the stream, which shows that the server lives however long the agent thinks. */
  async run(sandbox: string, request: AgentRequest, options: AgentRunOptions = {}): Promise<AgentResult> {
    const { signal, onEvent } = options;
    const call = { method: "POST" as const, json: request, slow: true, signal };
    const response = await this.#transport.send(at(sandbox, "run/stream"), call);
    for await (const { event, data } of serverEvents(response, this.#transport.url, signal)) {
      // The agent's own failure is an event with a type; anything else is the server's.
      if (event === "error" && !("type" in (data as object))) throw errorFromBody(data as ErrorBody, 500);
      const told = data as AgentEvent;
      if (told.type !== "result") await onEvent?.(told);
      else {
        const result = { ...told.result, error: told.result.error, errorCode: told.result.errorCode };
        await onEvent?.({ type: "result", result });
        return result;
      }
    }
    signal?.throwIfAborted();
    throw lostServer(this.#transport.url, undefined);
  }

  stream(sandbox: string, request: AgentRequest, signal?: AbortSignal): AsyncIterable<AgentEvent> {
    return streamAgent(this, sandbox, request, signal);
  }

  async cancel(sandbox: string, sessionId?: string): Promise<number> {
    const json = sessionId === undefined ? {} : { sessionId };
    const call = { method: "POST" as const, json, repeatable: true };
    return (await this.#transport.json<{ cancelled: number }>(at(sandbox, "run/cancel"), call)).cancelled;
  }
}
