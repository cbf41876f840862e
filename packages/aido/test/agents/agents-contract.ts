import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentEvent, AgentRequest } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { type AidoUnderTest, openPlace, output } from "../contract/aido-contract.ts";
import { until } from "../exec/exec-bed.ts";

const PROGRAM = readFileSync(join(import.meta.dirname, "scripted-acp-agent.mjs"));
const AGENT = { kind: "acp", argv: ["node", "/tmp/acp-agent.mjs"] };
const AGENTS = {
  scripted: AGENT,
  strict: { ...AGENT, permissions: "deny" },
  forgetful: { ...AGENT, argv: [...AGENT.argv, "--forgetful"] },
  chooser: { ...AGENT, argv: [...AGENT.argv, "--models"] },
  resumer: { ...AGENT, argv: [...AGENT.argv, "--models", "--resumes"] },
  told: { ...AGENT, argv: [...AGENT.argv, "--model={model}"] },
  mute: { kind: "acp", argv: ["sh", "-c", "cat >/dev/null"] },
  shell: { kind: "command", argv: ["sh", "-c", 'echo "$(cat)"; (sleep 300 & sleep 300)'] },
};

/** Agents in real sandboxes. */
export function agentsContract(under: AidoUnderTest): void {
  const place = () => openPlace({ ...under, settings: { agents: AGENTS, defaultAgent: "scripted" } });
  const prepare = async (aido: CoreAido) => {
    const { id } = await aido.sandboxes.create({ ttlMs: 120_000 });
    await aido.files.write(id, "/tmp/acp-agent.mjs", PROGRAM);
    return id;
  };
  const running = async (aido: CoreAido, id: string) =>
    (await output(aido, id, ["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"])).replace(
      "cat /proc",
      "",
    );

  describe(`agents over the Agent Client Protocol, with the ${under.driver} driver`, () => {
    test("S2-25 S2-26 S2-77 answer, remember over a restart of aido, and use tools within the policy", async () => {
      await using opened = place();
      const first = await opened.open();
      const id = await prepare(first);
      const events: AgentEvent[] = [];
      const run = (aido: CoreAido, request: AgentRequest) =>
        aido.agents.run(id, request, { onEvent: (event) => void events.push(event) });
      const hello = await run(first, { message: "hello", sessionId: "s", context: { a: 1 }, maxTurns: 3 });
      expect(hello).toMatchObject({ success: true, usage: { inputTokens: 12, outputTokens: 5 } });
      expect(hello.response).toContain("You said hello");
      expect(hello.response).toContain('{"a":1}');
      expect(hello.response).toContain('{"maxTurns":3}');
      await first.close();
      const second = await opened.open();
      const recalled = await run(second, { message: "recall", sessionId: "s" });
      expect(recalled.response).toBe("I remember: hello;");
      events.length = 0;
      const used = await run(second, { message: "permission" });
      expect(used).toMatchObject({ success: true, response: "Done." });
      expect(events.filter(({ type }) => type === "toolCall")).toEqual([
        { type: "toolCall", id: "t1", name: "write a file", status: "running", input: { path: "x" } },
        { type: "toolCall", id: "t1", name: "write a file", status: "done" },
      ]);
      expect(await output(second, id, ["cat", "allowed.txt"])).toBe("written by the agent\n");
      const denied = await run(second, { message: "permission", identifier: "strict" });
      expect(denied.response).toBe("I was not allowed to.");
      const forgotten = await run(second, { message: "hi", identifier: "forgetful", sessionId: "f" });
      expect(forgotten.success).toBe(true);
      expect(await run(second, { message: "recall", sessionId: "f" })).toMatchObject({
        success: false,
        errorCode: "AGENT_FAILED",
        error: expect.stringContaining("cannot take up a session"),
      });
    });

    test("S2-25 S2-77 are given the model that a message asks for, in a session that they take up again too", async () => {
      await using opened = place();
      const aido = await opened.open();
      const id = await prepare(aido);
      const run = (identifier: string, more: Partial<AgentRequest> = {}) =>
        aido.agents.run(id, { message: "model", identifier, ...more });
      expect((await run("chooser")).response).toBe("my own, new");
      expect((await run("chooser", { model: "large", sessionId: "c" })).response).toBe("large, new");
      expect((await run("chooser", { model: "small", sessionId: "c" })).response).toBe("small, loaded");
      expect((await run("resumer", { model: "small", sessionId: "r" })).response).toBe("small, new");
      expect((await run("resumer", { model: "large", sessionId: "r" })).response).toBe("large, resumed");
      expect((await run("resumer", { message: "recall", sessionId: "r" })).response).toBe(
        "I remember: model;model;",
      );
      expect((await run("told", { model: "in-its-argv" })).response).toBe("in-its-argv, new");
      const failed = { success: false, errorCode: "AGENT_FAILED" };
      const nobody = expect.stringContaining("lets nobody choose its model");
      expect(await run("scripted", { model: "large" })).toMatchObject({ ...failed, error: nobody });
      expect(await run("chooser", { model: "no-such-model" })).toMatchObject(failed);
    });

    test("S2-77 an agent that goes on beyond its turns is stopped, and the result says so", async () => {
      await using opened = place();
      const aido = await opened.open();
      const id = await prepare(aido);
      const said: string[] = [];
      const onEvent = (event: AgentEvent) => {
        if (event.type === "text") said.push(event.text);
      };
      expect(await aido.agents.run(id, { message: "busy", maxTurns: 3 }, { onEvent })).toMatchObject({
        success: false,
        errorCode: "AGENT_FAILED",
        error: "The agent used up its turns before it was done",
      });
      expect(said).toEqual(["Once more. ", "Once more. ", "Once more. "]);
    });

    test("a cancelled agent is told and may end its work; one that never answers is killed at its time", async () => {
      await using opened = place();
      const aido = await opened.open();
      const id = await prepare(aido);
      const told: string[] = [];
      const hanging = aido.agents.run(
        id,
        { message: "hang", sessionId: "s" },
        { onEvent: ({ type }) => void told.push(type) },
      );
      await until("it speaks", () => told.includes("text"), 30_000);
      expect(await aido.agents.cancel(id, "s")).toBe(1);
      expect(await hanging).toMatchObject({ success: false, errorCode: "CANCELLED" });
      expect(await output(aido, id, ["cat", "cancelled.txt"])).toBe("told in time\n");
      for (const request of [{ message: "never" }, { message: "m", identifier: "mute" }]) {
        expect(await aido.agents.run(id, { ...request, timeoutMs: 1_500 })).toMatchObject({
          success: false,
          errorCode: "COMMAND_TIMEOUT",
        });
      }
      const slow = { message: "said before", identifier: "shell", timeoutMs: 1_000 };
      expect(await aido.agents.run(id, slow)).toMatchObject({
        errorCode: "COMMAND_TIMEOUT",
        response: "said before\n",
      });
      expect(await running(aido, id)).not.toMatch(/acp-agent|sleep 300/);
    });

    test("a hostile agent gets nothing of the host and ends no other's work", async () => {
      await using opened = place();
      const aido = await opened.open();
      const id = await prepare(aido);
      const run = (message: string) => aido.agents.run(id, { message, timeoutMs: 60_000 });
      expect(await run("host paths")).toMatchObject({ success: true, response: "-32601 -32601" });
      expect(await run("nonsense")).toMatchObject({ success: true, response: "still here" });
      expect(await run("endless")).toMatchObject({ success: false, errorCode: "PAYLOAD_TOO_LARGE" });
      const died = await run("die");
      expect(died).toMatchObject({ success: false, errorCode: "AGENT_FAILED" });
      expect(died.error).toContain("out of ideas");
      expect(await run("turns")).toMatchObject({ success: false, error: expect.stringContaining("turns") });
      await expect(aido.agents.run(id, { message: "m", identifier: "codex" })).rejects.toMatchObject({
        code: "AGENT_UNAVAILABLE",
      });
      expect(await running(aido, id)).not.toContain("acp-agent");
    });
  });
}
