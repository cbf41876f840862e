import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { registryAuth, registryOf } from "./registry-auth.ts";

test.each([
  ["python:3.12", "https://index.docker.io/v1/"],
  ["oven/bun", "https://index.docker.io/v1/"],
  ["docker.io/oven/bun", "https://index.docker.io/v1/"],
  ["localhost/tool", "localhost"],
  ["127.0.0.1:5000/tool", "127.0.0.1:5000"],
  ["registry.example.com/a/b:1", "registry.example.com"],
])("the registry of %s is %s", (image, registry) => {
  expect(registryOf(image)).toBe(registry);
});

test("what docker login stored is used for that registry and no other", async () => {
  const directory = await mkdtemp(join(tmpdir(), "aido-auth-"));
  try {
    const file = join(directory, "config.json");
    const auth = Buffer.from("me:pass:word").toString("base64");
    await writeFile(file, JSON.stringify({ auths: { "r.example.com": { auth }, "empty.example.com": {} } }));
    expect(await registryAuth("r.example.com/tool", file)).toEqual({
      username: "me",
      password: "pass:word",
      serveraddress: "r.example.com",
    });
    expect(await registryAuth("empty.example.com/tool", file)).toBeUndefined();
    expect(await registryAuth("tool", file)).toBeUndefined();
    expect(await registryAuth("tool", join(directory, "none.json"))).toBeUndefined();
    await writeFile(file, "not json");
    expect(await registryAuth("r.example.com/tool", file)).toBeUndefined();
  } finally {
    await rm(directory, { recursive: true });
  }
});
