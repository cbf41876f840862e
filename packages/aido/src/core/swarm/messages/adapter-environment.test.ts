import { expect, test } from "vitest";
import { type AdapterOptions, readAdapterEnvironment, toAdapterEnvironment } from "./adapter-environment.ts";

test.each<AdapterOptions>([
  { agent: "claude" },
  { agent: "claude", model: "small", maxTurns: 20, maxTokens: 1_000_000, maxSeconds: 3600 },
  { agent: "acp", argv: ["gemini", "--acp"] },
  { agent: "command", argv: ["sh", "-c", "echo $1"] },
])("an adapter reads what its host has set: %j", (options) => {
  expect(readAdapterEnvironment(toAdapterEnvironment(options))).toEqual(options);
});

test("without any it is Claude Code with no limits", () => {
  expect(readAdapterEnvironment({ AIMI_AGENT: "", AIMI_MAX_TURNS: "" })).toEqual({ agent: "claude" });
});

test.each([
  [{ AIMI_AGENT: "gpt" }, "AIMI_AGENT"],
  [{ AIMI_AGENT: "acp" }, "AIMI_AGENT_ARGV"],
  [{ AIMI_AGENT_ARGV: "{" }, "AIMI_AGENT_ARGV"],
  [{ AIMI_AGENT_ARGV: '["a", 1]' }, "AIMI_AGENT_ARGV"],
  [{ AIMI_AGENT_ARGV: "[]" }, "AIMI_AGENT_ARGV"],
  [{ AIMI_MAX_TURNS: "0" }, "AIMI_MAX_TURNS"],
  [{ AIMI_MAX_TOKENS: "1e6" }, "AIMI_MAX_TOKENS"],
  [{ AIMI_MAX_SECONDS: "-5" }, "AIMI_MAX_SECONDS"],
])("%j is refused by name", (env, name) => {
  expect(() => readAdapterEnvironment(env)).toThrow(name);
});
