import type { Agents } from "@aido/sdk";
import type { AgentEvent, AgentRequest, AgentResult } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { listAgents, runAgent } from "./agent.ts";

const result = (changes: Partial<AgentResult> = {}): AgentResult => ({
  success: true,
  response: "done",
  error: undefined,
  errorCode: undefined,
  traceId: "t",
  durationMs: 1500,
  usage: { inputTokens: 7, outputTokens: 3 },
  sessionId: "s-1",
  ...changes,
});

function contextWith(events: readonly AgentEvent[], answer: AgentResult, json = false) {
  const asked: AgentRequest[] = [];
  const run: Agents["run"] = async (_, request, options) => {
    asked.push(request);
    for (const event of events) await options?.onEvent?.(event);
    return answer;
  };
  return { asked, context: fakeContext({ backend: fakeBackend({ agents: { run } }), globals: { json } }) };
}

test("an agent's text reaches the terminal as it comes, without what could act on it", async () => {
  const { context, asked } = contextWith(
    [
      { type: "text", id: "a", text: "one\u001b[2J" },
      { type: "toolCall", id: "t", name: "Bash\u0007", status: "running" },
      { type: "text", id: "b", text: "two\n" },
    ],
    result(),
  );
  const options = { agent: "mine", session: "s-1", maxTurns: "4", context: '{"a":1}', timeout: "10m" };
  expect(await runAgent(context, "web", ["fix", "it"], options)).toBe(0);
  expect(context.stdout.text).toBe("one\\x1b[2J\ntwo\n");
  expect(context.stderr.text).toContain("aido: Bash\\x07");
  expect(context.stderr.text).toContain("--session s-1");
  expect(asked).toEqual([
    {
      message: "fix it",
      identifier: "mine",
      sessionId: "s-1",
      model: undefined,
      maxTurns: 4,
      context: { a: 1 },
      timeoutMs: 600_000,
    },
  ]);
});

test("how it ended is the exit code", async () => {
  const failed = contextWith([], result({ success: false, error: "no key", errorCode: "AGENT_FAILED" }));
  expect(await runAgent(failed.context, "web", ["m"], {})).toBe(1);
  expect(failed.context.stderr.text).toContain("no key");
  const late = contextWith([], result({ success: false, error: "late", errorCode: "COMMAND_TIMEOUT" }));
  expect(await runAgent(late.context, "web", ["m"], {})).toBe(124);
});

test("with --json each event is a line", async () => {
  const event = { type: "result", result: result() } as const;
  const { context } = contextWith([event], result(), true);
  expect(await runAgent(context, "web", ["m"], {})).toBe(0);
  expect(JSON.parse(context.stdout.text)).toMatchObject({ type: "result", result: { response: "done" } });
});

test("a context that is no object is refused, and agents are listed with the usual one marked", async () => {
  const { context } = contextWith([], result());
  await expect(runAgent(context, "web", ["m"], { context: "[1]" })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
  const mine = {
    identifier: "mine",
    displayName: "Mine",
    description: "d",
    kind: "command",
    isDefault: true,
  };
  const list: Agents["list"] = async () => [{ ...mine, kind: "command" }];
  const listing = fakeContext({ backend: fakeBackend({ agents: { list } }) });
  expect(await listAgents(listing)).toBe(0);
  expect(listing.stdout.text).toContain("mine *");
});
