import { expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { hashToken, newToken, SandboxTokens } from "./sandbox-tokens.ts";

test("S2-70 a token is 32 random bytes as 64 hex digits, another one each time", () => {
  const tokens = new Set(Array.from({ length: 100 }, newToken));
  expect(tokens.size).toBe(100);
  for (const token of tokens) expect(token).toMatch(/^[0-9a-f]{64}$/);
});

test("S2-70 only the hash of a token is stored", async () => {
  const store = new MemoryStore();
  await store.sandboxes.insert(sandboxRecord("aaaa"));
  const token = await new SandboxTokens(store.sandboxes).issue("aaaa");
  const record = await store.sandboxes.get("aaaa");
  expect(record?.tokenHash).toBe(hashToken(token));
  expect(JSON.stringify(record)).not.toContain(token);
});

test("S2-72 only the sandbox's own token is right", async () => {
  const { sandboxes } = new MemoryStore();
  const tokens = new SandboxTokens(sandboxes);
  await sandboxes.insert(sandboxRecord("aaaa"));
  await sandboxes.insert(sandboxRecord("bbbb"));
  await sandboxes.insert(sandboxRecord("cccc"));
  const a = await tokens.issue("aaaa");
  const b = await tokens.issue("bbbb", "chosen-by-the-caller");
  expect(b).toBe("chosen-by-the-caller");
  expect(await tokens.verify("aaaa", a)).toBe(true);
  expect(await tokens.verify("bbbb", b)).toBe(true);
  expect(await tokens.verify("aaaa", b)).toBe(false);
  expect(await tokens.verify("aaaa", "")).toBe(false);
  expect(await tokens.verify("aaaa", hashToken(a))).toBe(false);
  expect(await tokens.verify("aaa", a)).toBe(false);
  expect(await tokens.verify("cccc", "0".repeat(64))).toBe(false);
  expect(await tokens.verify("nobody", "0".repeat(64))).toBe(false);
});

test("a new token takes the place of the one before", async () => {
  const { sandboxes } = new MemoryStore();
  const tokens = new SandboxTokens(sandboxes);
  await sandboxes.insert(sandboxRecord("aaaa"));
  const first = await tokens.issue("aaaa");
  const second = await tokens.issue("aaaa");
  expect(await tokens.verify("aaaa", first)).toBe(false);
  expect(await tokens.verify("aaaa", second)).toBe(true);
});
