import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DockerDriver } from "./docker-driver.ts";
import { Engine } from "./engine.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "aido-engine-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

/** Accepts and never answers. */
async function silentServer(path: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => socket.on("error", () => undefined).resume());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

test("S0-85 without an engine every question says how to start one", async () => {
  const driver = new DockerDriver({
    host: `unix://${join(directory, "docker.sock")}`,
    scope: "test",
    agentPath: "/nowhere",
    runDir: () => directory,
    hostsFile: `${directory}/hosts`,
  });
  const failure = await driver.capabilities().catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => isAidoError(error, "RUNTIME_UNAVAILABLE"));
  expect(failure).toMatchObject({ hint: expect.stringContaining("sudo systemctl start docker") });
  await expect(driver.list()).rejects.toSatisfy((error) => isAidoError(error, "RUNTIME_UNAVAILABLE"));
  await driver.close();
});

test("an engine that accepts and never answers is given up on", async () => {
  const path = join(directory, "docker.sock");
  await using _server = await silentServer(path);
  const engine = new Engine({ host: `unix://${path}` });
  const asked = engine.call({ doing: "asking" }, () => engine.docker.ping(), { timeoutMs: 50 });
  await expect(asked).rejects.toSatisfy((error) => isAidoError(error, "RUNTIME_UNAVAILABLE"));
  engine.close();
});

test("a caller's abort is passed on as it is", async () => {
  const path = join(directory, "docker.sock");
  await using _server = await silentServer(path);
  const engine = new Engine({ host: `unix://${path}` });
  const cancel = new AbortController();
  const reason = new Error("enough");
  const asked = engine.call({ doing: "asking" }, () => engine.docker.ping(), { signal: cancel.signal });
  cancel.abort(reason);
  await expect(asked).rejects.toBe(reason);
  engine.close();
});
