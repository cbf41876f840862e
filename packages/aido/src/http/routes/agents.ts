import type { Aido } from "@aido/sdk";
import {
  agentCancelBody,
  agentCancelReply,
  agentListReply,
  agentResultReply,
  agentRunBody,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox, type SandboxLookup } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";
import { type AgentWire, agentStream } from "../streams/agent-stream.ts";

const TAG = "agents";
const BASE = "/api/sandbox/:containerId/agents/run";
const PLAIN: AgentWire = { toWire: (event) => ({ event: event.type, data: event }) };

export function agentRoutes(aido: Aido, known: SandboxLookup = aido): Operation[] {
  const own = async (http: Context, request: RequestContext) =>
    (await requestedSandbox(known, request, http.req.param("containerId") ?? "")).id;

  return [
    operation({
      id: "listAgents",
      method: "get",
      path: "/api/agents",
      tag: TAG,
      summary: "Agents that can be run in sandboxes",
      scope: "read",
      replies: {
        200: {
          schema: agentListReply,
          description: "Whether a sandbox's image has one shows when it is run",
        },
      },
      quiet: true,
      handle: async ({ http }) => {
        const agents = await aido.agents.list();
        return http.json({ agents, count: agents.length });
      },
    }),
    operation({
      id: "runAgent",
      method: "post",
      path: BASE,
      tag: TAG,
      summary: "Give an agent in the sandbox a message and wait for what becomes of it",
      scope: "write",
      body: agentRunBody,
      replies: { 200: { schema: agentResultReply, description: "An agent that fails is a result too" } },
      // A client that leaves cancels the run: nobody else would hear its result.
      handle: async ({ body, request, http }) => {
        const signal = AbortSignal.any([request.signal, request.draining]);
        return http.json(await aido.agents.run(await own(http, request), body, { signal }));
      },
    }),
    operation({
      id: "streamAgent",
      method: "post",
      path: `${BASE}/stream`,
      tag: TAG,
      summary: "As runAgent, with what happens as server-sent events",
      scope: "write",
      body: agentRunBody,
      replies: {
        200: {
          contentType: "text/event-stream",
          description: "Events `start`, `text`, `toolCall`, `usage`, `error`, then one `result`",
        },
      },
      handle: async ({ body, request, http }) => {
        const sandboxId = await own(http, request);
        return await agentStream((signal) => aido.agents.stream(sandboxId, body, signal), PLAIN, request);
      },
    }),
    operation({
      id: "cancelAgent",
      method: "post",
      path: `${BASE}/cancel`,
      tag: TAG,
      summary: "End the run of a session, or every run in the sandbox",
      scope: "write",
      body: agentCancelBody,
      replies: { 200: { schema: agentCancelReply, description: "How many there were" } },
      handle: async ({ body, request, http }) => {
        const cancelled = await aido.agents.cancel(await own(http, request), body.sessionId);
        return http.json({ success: true, cancelled });
      },
    }),
  ];
}
