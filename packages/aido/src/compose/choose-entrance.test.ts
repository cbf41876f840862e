import { describe, expect, test } from "vitest";
import { loadConfig } from "../config/load-config.ts";
import type { ApiKeyRecord } from "../core/access/api-keys.ts";
import { newApiKey } from "../core/access/new-api-key.ts";
import { chooseEntrance } from "./choose-entrance.ts";

const NOW = new Date("2030-01-01T00:00:00Z");

function key(ends: Partial<Pick<ApiKeyRecord, "expiresAt" | "revokedAt">> = {}): ApiKeyRecord {
  const { record } = newApiKey({ name: "k", scopes: ["read"], now: NOW, expiresAt: undefined });
  return { ...record, ...ends };
}

const REVOKED = key({ revokedAt: NOW });
const EXPIRED = key({ expiresAt: NOW });

function entrance(keys: readonly ApiKeyRecord[], flags: Readonly<Record<string, string>> = {}) {
  const { config } = loadConfig({ env: { XDG_CONFIG_HOME: "/nowhere" }, cwd: "/", flags });
  return chooseEntrance(config.serve, { list: async () => keys }, NOW);
}

describe("who gets in to a server", () => {
  test("is everybody only where there never was a key, on loopback", async () => {
    expect(await entrance([])).toBe("open");
    expect(await entrance([key()])).toBe("guarded");
    expect(await entrance([REVOKED, EXPIRED, key()])).toBe("guarded");
    await expect(entrance([], { "serve.host": "0.0.0.0" })).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      hint: expect.stringContaining("aido key create"),
    });
  });

  test("is nobody when the last key was revoked or has expired", async () => {
    expect(await entrance([REVOKED])).toBe("shut");
    expect(await entrance([EXPIRED])).toBe("shut");
    expect(await entrance([REVOKED], { "serve.host": "0.0.0.0" })).toBe("shut");
    expect(await entrance([REVOKED], { "serve.jwtSecret": "s" })).toBe("guarded");
  });

  test("is everybody again when that is asked for, once every key is revoked, and on loopback alone", async () => {
    const open = { "serve.open": "true" };
    expect(await entrance([REVOKED], open)).toBe("open");
    expect(await entrance([REVOKED, EXPIRED], open)).toBe("shut");
    expect(await entrance([REVOKED, key()], open)).toBe("guarded");
    await expect(entrance([REVOKED], { ...open, "serve.host": "0.0.0.0" })).rejects.toMatchObject({
      code: "INVALID_CONFIG",
    });
  });
});
