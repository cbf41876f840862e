import type { Agents } from "@aido/sdk";
import {
  sidecarAgentBody,
  sidecarAgentReply,
  sidecarAgentsReply,
  sidecarCancelBody,
  sidecarDoneReply,
} from "@aido/sdk/schemas";
import type { Operation } from "../operation.ts";
import { agentStream } from "../streams/agent-stream.ts";
import { AgentEvents } from "./agent-events.ts";
import { toAgentRequest } from "./agent-request.ts";
import { sandboxIdOf, sidecarOperation } from "./sidecar-operation.ts";

/** A client that leaves cancels its run: nobody else would hear of it. */
export function agentRoutes(agents: Agents): Operation[] {
  return [
    sidecarOperation({
      id: "listSidecarAgents",
      method: "get",
      path: "/agents",
      summary: "Agents that can be run in the sandbox",
      replies: { 200: { schema: sidecarAgentsReply, description: "None when there is no backend" } },
      quiet: true,
      handle: async ({ http }) => {
        const list = (await agents.list()).map(({ identifier, displayName, description }) => ({
          identifier,
          displayName,
          description,
        }));
        return http.json({ agents: list, count: list.length });
      },
    }),
    sidecarOperation({
      id: "runSidecarAgent",
      method: "post",
      path: "/agents/run",
      summary: "Give an agent in the sandbox a message and wait for what becomes of it",
      body: sidecarAgentBody,
      replies: {
        200: { schema: sidecarAgentReply, description: "An agent that fails is a result too" },
        500: { description: "There is no such agent, or nothing to run it with" },
      },
      handle: async ({ body, request, http }) => {
        const signal = AbortSignal.any([request.signal, request.draining]);
        const result = await agents.run(sandboxIdOf(http), toAgentRequest(body), { signal });
        const { success, response, error, traceId, durationMs, usage, sessionId } = result;
        const data = { finalText: response, metadata: { sessionId, traceId } };
        return http.json({
          ...{ success, response, error: error ?? null, traceId, durationMs, usage, sessionId, data },
        });
      },
    }),
    sidecarOperation({
      id: "streamSidecarAgent",
      method: "post",
      path: "/agents/run/stream",
      summary: "As runSidecarAgent, with what happens as server-sent events",
      body: sidecarAgentBody,
      replies: {
        200: {
          contentType: "text/event-stream",
          description: "Events `start`, `message.part.updated`, `usage`, `error`, `result`, then one `done`",
        },
      },
      handle: ({ body, request, http }) => {
        const asked = toAgentRequest(body);
        const open = (signal: AbortSignal) => agents.stream(sandboxIdOf(http), asked, signal);
        return agentStream(open, new AgentEvents(), request);
      },
    }),
    sidecarOperation({
      id: "cancelSidecarAgent",
      method: "post",
      path: "/agents/run/cancel",
      summary: "End the run of a session, or every run in the sandbox",
      body: sidecarCancelBody,
      replies: { 200: { schema: sidecarDoneReply, description: "None runs any more" } },
      handle: async ({ body, http }) => {
        await agents.cancel(sandboxIdOf(http), body.sessionId);
        return http.json({ success: true });
      },
    }),
  ];
}
