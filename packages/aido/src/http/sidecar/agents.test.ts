import type { Agents } from "@aido/sdk";
import { type AgentEvent, type AgentRequest, AidoError } from "@aido/sdk/protocol";
import { sidecarAgentReply, sidecarAgentsReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { readEvents } from "../../../test/server/read-events.ts";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";
import { AgentEvents } from "./agent-events.ts";

const RESULT = {
  success: true,
  response: "done",
  error: undefined,
  errorCode: undefined,
  traceId: "t1",
  durationMs: 12,
  usage: { inputTokens: 3, outputTokens: 4 },
  sessionId: "s1",
};
const EVENTS: readonly AgentEvent[] = [
  { type: "start", identifier: "default", sessionId: "s1", traceId: "t1" },
  { type: "text", id: "p", text: "do" },
  { type: "toolCall", id: "c", name: "bash", status: "running", input: { command: "ls" } },
  { type: "toolCall", id: "c", name: "bash", status: "done" },
  { type: "text", id: "p", text: "ne" },
  { type: "usage", usage: RESULT.usage },
  { type: "result", result: RESULT },
];

/** An agent that plays the events, and notes what it was asked. */
function scripted(changes: Partial<Agents> = {}) {
  const asked: { sandbox: string; request: AgentRequest }[] = [];
  const cancelled: (string | undefined)[] = [];
  const agents: Agents = {
    list: async () => [
      {
        identifier: "default",
        displayName: "Default",
        description: "Plays a script",
        kind: "command",
        isDefault: true,
      },
    ],
    run: async (sandbox, request) => {
      asked.push({ sandbox, request });
      return RESULT;
    },
    async *stream(sandbox, request) {
      asked.push({ sandbox, request });
      yield* EVENTS;
    },
    cancel: async (_, sessionId) => cancelled.push(sessionId),
    ...changes,
  };
  return { agents, asked, cancelled };
}

test("S2-25 a prompt is given to the agent and its answer comes in both shapes", async () => {
  const { agents, asked } = scripted();
  await using bed = await SidecarBed.open({ agents });
  const reply = await bed.post("/agents/run", { identifier: "default", message: "hi" });
  expect(reply.status).toBe(200);
  const { errorCode: _, ...told } = RESULT;
  expect(sidecarAgentReply.parse(reply.json)).toEqual({
    ...told,
    error: null,
    data: { finalText: "done", metadata: { sessionId: "s1", traceId: "t1" } },
  });
  expect(asked).toEqual([{ sandbox: bed.id, request: { identifier: "default", message: "hi" } }]);
});

test("S2-26 a task has its session, model, turns, context and time", async () => {
  const { agents, asked } = scripted();
  await using bed = await SidecarBed.open({ agents });
  const result = await bed.client().runAgent({
    message: "build",
    sessionId: "s0",
    model: "m",
    maxTurns: 4,
    context: { repo: "x" },
    timeoutMs: 60_000,
  });
  expect({ ...result, errorCode: undefined }).toEqual(RESULT);
  expect(asked[0]?.request).toEqual({
    identifier: "default",
    message: "build",
    sessionId: "s0",
    model: "m",
    maxTurns: 4,
    context: { repo: "x" },
    timeoutMs: 60_000,
  });
});

test("S2-26 an agent that fails is an answer; the reason is text", async () => {
  const failed = { ...RESULT, success: false, response: "", error: "it gave up" };
  const { agents } = scripted({ run: async () => failed });
  await using bed = await SidecarBed.open({ agents });
  const reply = await bed.post("/agents/run", { message: "hi" });
  expect([reply.status, reply.json]).toMatchObject([200, { success: false, error: "it gave up" }]);
});

test("S2-26 an agent that the sandbox has not got is status 500 with a code and a message", async () => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post("/agents/run", { message: "hi" });
  expect([reply.status, reply.json]).toMatchObject([
    500,
    { success: false, error: { code: "AGENT_UNAVAILABLE", message: expect.any(String) } },
  ]);
  const unknown = await bed.post("/agents/run", { identifier: "nobody", message: "hi" });
  expect([unknown.status, unknown.json.error.code]).toEqual([500, "AGENT_NOT_FOUND"]);
  const refused = await bed.post("/agents/run/stream", { identifier: "nobody", message: "hi" });
  expect([refused.status, refused.json.success]).toEqual([500, false]);
  const begun = await readEvents(await bed.fetch("POST", "/agents/run/stream", { body: { message: "hi" } }));
  expect(begun.at(-1)).toMatchObject({ event: "error", data: { code: "AGENT_UNAVAILABLE" } });
});

test("S2-26 what happens is streamed: start, parts as they grow, tools, the result, done", async () => {
  const { agents } = scripted();
  await using bed = await SidecarBed.open({ agents });
  const events = await readEvents(await bed.fetch("POST", "/agents/run/stream", { body: { message: "hi" } }));
  expect(events.map(({ event, data }) => [event, data])).toEqual([
    ["start", { identifier: "default", sessionId: "s1", traceId: "t1" }],
    ["message.part.updated", { part: { id: "p", type: "text", text: "do" } }],
    [
      "message.part.updated",
      {
        part: { id: "c", type: "tool", tool: "bash", state: { status: "running", input: { command: "ls" } } },
      },
    ],
    [
      "message.part.updated",
      { part: { id: "c", type: "tool", tool: "bash", state: { status: "completed" } } },
    ],
    ["message.part.updated", { part: { id: "p", type: "text", text: "done" } }],
    ["usage", RESULT.usage],
    [
      "result",
      {
        success: true,
        finalText: "done",
        metadata: { sessionId: "s1", traceId: "t1" },
        tokenUsage: RESULT.usage,
        durationMs: 12,
      },
    ],
    ["done", {}],
  ]);
});

test("a viewer that leaves cancels the run", async () => {
  let isOver: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const { agents } = scripted({
    async *stream(_sandbox, _request, signal) {
      signal?.addEventListener("abort", isOver);
      yield { type: "start", identifier: "default", sessionId: "s1", traceId: "t1" };
      await over;
    },
  });
  await using bed = await SidecarBed.open({ agents });
  const stream = await bed.fetch("POST", "/agents/run/stream", { body: { message: "hi" } });
  await readEvents(stream, ({ event }) => event === "start");
  await over;
});

test("a long text goes on in parts of bounded size", () => {
  const wire = new AgentEvents();
  const texts = new Map<string, string>();
  for (let at = 0; at < 100; at += 1) {
    const { data } = wire.toWire({ type: "text", id: "p", text: `${at}.`.padEnd(1000, "x") });
    const { part } = data as { part: { id: string; text: string } };
    texts.set(part.id, part.text);
  }
  expect([...texts.values()].join("")).toHaveLength(100_000);
  expect(Math.max(...[...texts.values()].map((text) => text.length))).toBeLessThanOrEqual(16 * 1024);
});

test("agents are listed, counted in health, and runs are cancelled by session or all", async () => {
  const { agents, cancelled } = scripted();
  await using bed = await SidecarBed.open({ agents });
  expect(sidecarAgentsReply.parse((await bed.get("/agents")).json).count).toBe(1);
  expect((await bed.get("/health")).json.backends).toEqual({ total: 1 });
  expect((await bed.post("/agents/run/cancel", {})).json).toEqual({ success: true });
  expect((await bed.post("/agents/run/cancel", { sessionId: "s1" })).json).toEqual({ success: true });
  expect(cancelled).toEqual([undefined, "s1"]);
});

test.each<[string, object]>([
  ["no message", {}],
  ["an empty message", { message: "" }],
  ["turns below zero", { message: "x", metadata: { maxTurns: -1 } }],
  ["metadata that is text", { message: "x", metadata: "y" }],
  ["a time that is text", { message: "x", timeout: "1s" }],
  ["a session's name that is too long", { message: "x", sessionId: "s".repeat(1000) }],
])("%s is refused", async (_, body) => {
  const { agents, asked } = scripted();
  await using bed = await SidecarBed.open({ agents });
  for (const path of ["/agents/run", "/agents/run/stream"]) {
    const reply = await bed.post(path, body);
    expect([reply.status, reply.json.error.code]).toEqual([400, "VALIDATION_ERROR"]);
  }
  expect(asked).toEqual([]);
});

test("a run that breaks after it has begun ends its stream with an error", async () => {
  const { agents } = scripted({
    async *stream() {
      yield { type: "start", identifier: "default", sessionId: "s1", traceId: "t1" };
      throw new AidoError("CONTAINER_LOST", "The sandbox is gone");
    },
  });
  await using bed = await SidecarBed.open({ agents });
  const events = await readEvents(await bed.fetch("POST", "/agents/run/stream", { body: { message: "hi" } }));
  expect(events.at(-1)).toMatchObject({
    event: "error",
    data: { code: "CONTAINER_LOST", message: "The sandbox is gone" },
  });
});
