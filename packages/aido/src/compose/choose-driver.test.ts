import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../config/load-config.ts";
import { whyDockerIsSilent } from "./choose-driver.ts";
import { findAgent } from "./find-agent.ts";
import { scopeOf } from "./scope.ts";

describe("whether Docker is there", () => {
  test.each([
    ["HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\n\r\nOK", undefined],
    ["HTTP/1.1 500 Internal Server Error\r\n\r\n", expect.stringContaining("500 Internal")],
    ["SSH-2.0-OpenSSH_9\r\n", expect.stringContaining("SSH-2.0")],
    ["", expect.stringContaining("closed the connection")],
  ])("is told by its answer %j", async (answer, expected) => {
    await using engine = await listen((socket) => socket.end(answer));
    expect(await whyDockerIsSilent(engine.config)).toEqual(expected);
  });

  test("is answered in time when the engine hangs", async () => {
    await using engine = await listen(() => undefined);
    expect(await whyDockerIsSilent(engine.config)).toContain("nothing within 1500 ms");
  });

  test("is no when there is no socket", async () => {
    const config = configFor("unix:///nowhere/docker.sock");
    expect(await whyDockerIsSilent(config)).toMatch(/^Docker at .* does not answer: .*ENOENT/);
  });

  test("is not asked of an engine behind ssh", async () => {
    expect(await whyDockerIsSilent(configFor("ssh://user@host"))).toBeUndefined();
  });
});

describe("the supervisor's binary", () => {
  test("must be there", () => {
    expect(() => findAgent("/nowhere/aido-agent")).toThrow(
      expect.objectContaining({
        code: "RUNTIME_UNAVAILABLE",
        hint: expect.stringContaining("npm run build"),
      }),
    );
  });
});

describe("a scope", () => {
  test("belongs to one data directory, whatever it is called", () => {
    const one = mkdtempSync(join(tmpdir(), "aido-scope-"));
    const two = mkdtempSync(join(tmpdir(), "aido-scope-"));
    try {
      expect(scopeOf(one)).toMatch(/^[0-9a-f]{16}$/);
      expect(scopeOf(`${one}/../${one.split("/").at(-1)}`)).toBe(scopeOf(one));
      expect(scopeOf(two)).not.toBe(scopeOf(one));
    } finally {
      for (const directory of [one, two]) rmSync(directory, { recursive: true });
    }
  });
});

async function listen(onConnection: (socket: import("node:net").Socket) => void) {
  const directory = mkdtempSync(join(tmpdir(), "aido-ping-"));
  const open = new Set<import("node:net").Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  const path = join(directory, "docker.sock");
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    config: configFor(`unix://${path}`),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function configFor(dockerHost: string) {
  return loadConfig({ env: { XDG_CONFIG_HOME: "/nowhere", DOCKER_HOST: dockerHost }, cwd: "/" }).config;
}
