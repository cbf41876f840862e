import type { Aido } from "@aido/sdk";
import type { AgentEvent } from "@aido/sdk/protocol";
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
import { eventStream, type ServerEvent } from "../streams/event-stream.ts";

const TAG = "agents";
const BASE = "/api/sandbox/:containerId/agents/run";

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
        const over = new AbortController();
        const events = aido.agents.stream(sandboxId, body, over.signal)[Symbol.asyncIterator]();
        const leave = () => over.abort(new Error("the client has left"));
        request.signal.addEventListener("abort", leave, { once: true });
        // What is refused is answered as such, before a stream has begun.
        const first = await events.next();
        request.signal.removeEventListener("abort", leave);
        return eventStream((signal) => passOn(first, events, over, signal), request);
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

async function* passOn(
  first: IteratorResult<AgentEvent>,
  events: AsyncIterator<AgentEvent>,
  over: AbortController,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const leave = () => over.abort(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    for (let next = first; next.done !== true; next = await events.next()) {
      yield { event: next.value.type, data: next.value };
    }
  } finally {
    signal.removeEventListener("abort", leave);
    over.abort();
    await events.return?.().catch(() => undefined);
  }
}
