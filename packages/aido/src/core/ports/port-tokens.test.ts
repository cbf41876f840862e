import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PortTokens } from "./port-tokens.ts";
import { serverSecret } from "./server-secret.ts";

test("a token is good for one port of one sandbox and one secret", () => {
  const tokens = new PortTokens(new Uint8Array(32).fill(1));
  const token = tokens.issue("box", 8080);
  expect(token).toMatch(/^[a-z2-7]{26}$/);
  expect(tokens.isValid("box", 8080, token)).toBe(true);
  expect(tokens.isValid("box", 8081, token)).toBe(false);
  expect(tokens.isValid("box8", 80, token)).toBe(false);
  expect(tokens.isValid("box", 8080, token.slice(1))).toBe(false);
  expect(tokens.isValid("box", 8080, `${token.slice(1)}\u0000`)).toBe(false);
  expect(new PortTokens(new Uint8Array(32)).isValid("box", 8080, token)).toBe(false);
});

test("every byte of the mac counts", () => {
  const secrets = Array.from({ length: 200 }, (_, at) => new Uint8Array(32).fill(at));
  const issued = secrets.map((secret) => new PortTokens(secret).issue("box", 1));
  expect(new Set(issued.map((token) => token.slice(0, 13))).size).toBe(200);
  expect(new Set(issued.map((token) => token.slice(13))).size).toBe(200);
});

test("the server's secret is made once, for its owner alone, also when several ask at once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "aido-secret-"));
  try {
    const file = join(directory, "server.key");
    const all = await Promise.all(Array.from({ length: 8 }, () => serverSecret(file)));
    expect(new Set(all.map((secret) => Buffer.from(secret).toString("hex"))).size).toBe(1);
    expect(all[0]?.length).toBe(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory)).toEqual(["server.key"]);
    expect(await serverSecret(file)).toEqual(all[0]);
    writeFileSync(file, "short");
    await expect(serverSecret(file)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
