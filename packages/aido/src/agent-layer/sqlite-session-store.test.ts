import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compactIfNeeded, compactionThreshold, estimateTokens, messagesToCompact } from "./compaction.ts";
import type { AgentMessage, ModelClient } from "./model-client.ts";
import type { StoredMessage } from "./session-store.ts";
import { SqliteSessionStore } from "./sqlite-session-store.ts";

let directory: string;
let store: SqliteSessionStore;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "aido-sessions-"));
  store = new SqliteSessionStore(join(directory, "sessions.db"));
});
afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

const summariser: ModelClient = { reply: async () => ({ text: "wrote a.txt, tests pass", toolCalls: [] }) };

test("S4-36 a session starts active and keeps its status and task", async () => {
  const session = await store.createSession("make it work");
  expect(session.id).toMatch(/^[0-9a-f-]{36}$/);
  await store.updateSessionStatus(session.id, "failed");
  expect(await store.getSession(session.id)).toMatchObject({ status: "failed", task: "make it work" });
  expect(await store.getSession("unknown")).toBeUndefined();
});

test("messages come back in order with their tool calls, after a reopen too", async () => {
  const session = await store.createSession("t");
  const call: AgentMessage = {
    role: "assistant",
    content: "looking",
    toolCalls: [{ id: "c1", name: "read_file", arguments: { path: "a'\"\n" } }],
  };
  await store.appendMessage(session.id, { role: "user", content: "t" }, 1);
  await store.appendMessage(session.id, call, 5);
  await store.appendMessage(session.id, { role: "tool", content: "text", toolCallId: "c1" }, 1);
  await store.close();
  store = new SqliteSessionStore(join(directory, "sessions.db"));
  const messages = await store.listMessages(session.id);
  expect(messages.map((m) => m.sequence)).toEqual([1, 2, 3]);
  expect(messages[1]).toMatchObject(call);
  expect(messages[2]).toMatchObject({ toolCallId: "c1" });
});

test("a session past its threshold is compacted: the task and the last messages stay, pairs stay together", async () => {
  const session = await store.createSession("the task");
  await store.appendMessage(session.id, { role: "user", content: "the task" }, 2);
  for (let step = 0; step < 12; step++) {
    const calls = [{ id: `c${step}`, name: "execute_command", arguments: { command: "ls" } }];
    await store.appendMessage(session.id, { role: "assistant", content: "", toolCalls: calls }, 1_000);
    await store.appendMessage(session.id, { role: "tool", content: "out", toolCallId: `c${step}` }, 1_000);
  }
  const deps = { store, model: summariser, contextTokens: 20_000 };
  expect(compactionThreshold(20_000)).toBe(7_200);
  expect(await compactIfNeeded(deps, session.id)).toBe(true);

  const messages = await store.listMessages(session.id);
  expect(messages[0]).toMatchObject({ content: "the task" });
  expect(messages[1]?.content).toContain("wrote a.txt");
  expect(messages[2]).toMatchObject({ role: "assistant" });
  expect(messages.length).toBeGreaterThanOrEqual(12);
  const open = new Set<string>();
  for (const message of messages) {
    for (const call of message.toolCalls ?? []) open.add(call.id);
    if (message.toolCallId !== undefined) expect(open.delete(message.toolCallId)).toBe(true);
  }
  expect(open.size).toBe(0);
  const [event] = await store.listCompactions(session.id);
  expect(event).toMatchObject({ round: 1, tokensBefore: 24_002 });
  expect(event?.tokensAfter).toBeLessThan(event?.tokensBefore ?? 0);
  expect((await store.listMessages(session.id, { includeCompacted: true })).length).toBeGreaterThan(
    messages.length,
  );
});

test("a short session is not compacted", async () => {
  const session = await store.createSession("t");
  await store.appendMessage(session.id, { role: "user", content: "t" }, 1);
  expect(await compactIfNeeded({ store, model: summariser, contextTokens: 128_000 }, session.id)).toBe(false);
});

test("tool results at the cut go with their call", () => {
  const message = (role: AgentMessage["role"], sequence: number): StoredMessage => ({
    role,
    content: "",
    sequence,
    tokenCount: 1,
    isCompacted: false,
  });
  const roles: AgentMessage["role"][] = ["user", "assistant", "tool", "assistant", "tool", "tool", "tool"];
  const tail = Array.from({ length: 7 }, (_, index) => message("assistant", 8 + index));
  const all = [...roles.map((role, index) => message(role, index + 1)), ...tail];
  // The plain cut would fall between the results of the second call.
  expect(messagesToCompact(all).map((m) => m.sequence)).toEqual([2, 3]);
});

test("tokens are estimated from characters and tool calls", () => {
  expect(estimateTokens({ role: "user", content: "12345678" })).toBe(2);
});
