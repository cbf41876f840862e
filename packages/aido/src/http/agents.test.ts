import type { AgentEvent } from "@aido/sdk/protocol";
import { agentListReply, agentResultReply } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { until } from "../../test/exec/exec-bed.ts";
import { ApiBed } from "../../test/server/api-bed.ts";
import { readEvents } from "../../test/server/read-events.ts";

const AGENTS = {
  echoing: { kind: "command", argv: ["cat"], displayName: "Echo", env: { KEY: "secret-key" } },
  sleeper: { kind: "command", argv: ["sleep", "600"] },
  absent: { kind: "command", argv: ["no-such-agent"] },
};
const open = (options = {}) =>
  ApiBed.open({ settings: { agents: AGENTS, defaultAgent: "echoing" }, ...options });

describe("agents over HTTP", () => {
  test("are listed, those of the settings before those that aido knows", async () => {
    await using bed = await open();
    const reply = await bed.get("/api/agents");
    expect(agentListReply.safeParse(reply.json).error).toBeUndefined();
    expect(reply.json.agents[0]).toMatchObject({
      identifier: "echoing",
      displayName: "Echo",
      isDefault: true,
    });
    expect(reply.json.agents.map((agent: { identifier: string }) => agent.identifier)).toContain("claude");
    expect(reply.text).not.toContain("secret-key");
  });

  test("S2-25 S2-26 run to their end and answer with the result and its session", async () => {
    await using bed = await open();
    const id = await bed.sandbox();
    const reply = await bed.post(`/api/sandbox/${id}/agents/run`, { message: "hello", sessionId: "s" });
    expect(reply.status).toBe(200);
    expect(agentResultReply.safeParse(reply.json).error).toBeUndefined();
    expect(reply.json).toMatchObject({ success: true, response: "hello", sessionId: "s" });
  });

  test("stream what happens, and refuse before a stream has begun", async () => {
    await using bed = await open();
    const id = await bed.sandbox();
    const path = `/api/sandbox/${id}/agents/run/stream`;
    const events = await readEvents(await bed.fetch("POST", path, { body: { message: "hello" } }));
    expect(events.map(({ event }) => event)).toEqual(["start", "text", "result"]);
    const refused = await bed.post(path, { message: "m", identifier: "nobody" });
    expect([refused.status, refused.json.error.code]).toEqual([404, "AGENT_NOT_FOUND"]);
    const absent = await bed.post(`/api/sandbox/${id}/agents/run`, { message: "m", identifier: "absent" });
    expect([absent.status, absent.json.error.code]).toEqual([501, "AGENT_UNAVAILABLE"]);
  });

  test("through the SDK: events, the result, a busy session, cancel", async () => {
    await using bed = await open();
    const id = await bed.sandbox();
    const { agents } = bed.client();
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent) => void events.push(event);
    const result = await agents.run(id, { message: "hi" }, { onEvent });
    expect(result).toMatchObject({ success: true, response: "hi", error: undefined });
    expect(events.at(-1)).toEqual({ type: "result", result });
    const request = { message: "m", identifier: "sleeper", sessionId: "s" };
    const running = agents.run(id, request);
    await until("it runs", async () => (await bed.store.execs.running(id)).length === 1);
    await expect(agents.run(id, request)).rejects.toMatchObject({ code: "AGENT_SESSION_BUSY" });
    expect(await agents.cancel(id, "s")).toBe(1);
    expect(await running).toMatchObject({ success: false, errorCode: "CANCELLED" });
    expect((await agents.list()).length).toBeGreaterThan(3);
  });

  test("a client that leaves takes its run with it", async () => {
    await using bed = await open();
    const id = await bed.sandbox();
    for await (const event of bed.client().agents.stream(id, { message: "m", identifier: "sleeper" })) {
      expect(event.type).toBe("start");
      await until("it runs", async () => (await bed.store.execs.running(id)).length === 1);
      break;
    }
    await until("nothing runs", async () => (await bed.store.execs.running(id)).length === 0);
  });

  test("nobody runs an agent in somebody else's sandbox", async () => {
    await using bed = await open({ guarded: true });
    const id = await bed.sandbox(await bed.key("owner"));
    const key = await bed.key("other");
    for (const verb of ["run", "run/stream", "run/cancel"]) {
      const body = verb === "run/cancel" ? {} : { message: "m" };
      const reply = await bed.post(`/api/sandbox/${id}/agents/${verb}`, body, { key });
      expect(reply.status).toBe(404);
    }
  });
});
