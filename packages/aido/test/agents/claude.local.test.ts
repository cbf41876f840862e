import { execFileSync } from "node:child_process";
import { createReadStream, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentEvent } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { openPlace, output } from "../contract/aido-contract.ts";
import { until } from "../exec/exec-bed.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const API = readFileSync(join(import.meta.dirname, "scripted-messages-api.mjs"));
const env = { ANTHROPIC_BASE_URL: "http://127.0.0.1:8123", ANTHROPIC_API_KEY: "not-a-key" };
const claude = { kind: "claude", argv: ["/tmp/claude"], env };

test("S2-25 S2-26 S2-77 S2-96 the real Claude Code works in a sandbox without a network, with the model it is told, and remembers", async () => {
  const program = execFileSync("bash", [join(ROOT, "scripts/test-agents.sh")], { encoding: "utf8" }).trim();
  await using place = openPlace({ driver: "local", image: "bash", settings: { agents: { claude } } });
  const aido = await place.open();
  const limits = { memoryBytes: 3 * 1024 ** 3, pids: 512 };
  const { id } = await aido.sandboxes.create({ limits, ttlMs: 300_000 });
  await aido.files.write(id, "/tmp/claude", createReadStream(program), { mode: 0o755 });
  await aido.files.write(id, "/tmp/api.mjs", API);
  const api = await aido.execs.start(id, { argv: ["node", "/tmp/api.mjs", "8123"] });
  await until("the API listens", async () => (await aido.execs.get(id, api.id)).stdoutBytes > 0);
  const events: AgentEvent[] = [];
  const told = await aido.agents.run(
    id,
    { message: "the word is heron; write the file", sessionId: "s", maxTurns: 4, timeoutMs: 120_000 },
    { onEvent: (event) => void events.push(event) },
  );
  expect(told).toMatchObject({ success: true, response: "The file is written.", error: undefined });
  expect(told.usage.inputTokens).toBeGreaterThan(0);
  expect(told.usage.outputTokens).toBeGreaterThan(0);
  expect(events.filter(({ type }) => type === "toolCall")).toMatchObject([
    { name: "Bash", status: "running", input: { command: "echo by claude > claude.txt" } },
    { name: "Bash", status: "done" },
  ]);
  expect(await output(aido, id, ["cat", "claude.txt"])).toBe("by claude\n");
  const recalled = await aido.agents.run(id, { message: "which word?", sessionId: "s", timeoutMs: 120_000 });
  expect(recalled).toMatchObject({ success: true, response: "heron", sessionId: "s" });
  const fresh = await aido.agents.run(id, { message: "which word?", context: { a: 1 }, timeoutMs: 120_000 });
  expect(fresh).toMatchObject({ success: true, response: "I do not know." });
  const model = "claude-of-this-test-1";
  const named = await aido.agents.run(id, { message: "which model?", model, timeoutMs: 120_000 });
  expect(named).toMatchObject({ success: true, response: model });
  const cut = await aido.agents.run(id, { message: "write the file", maxTurns: 1, timeoutMs: 120_000 });
  expect(cut).toMatchObject({ success: false, error: expect.stringContaining("turns") });
});
