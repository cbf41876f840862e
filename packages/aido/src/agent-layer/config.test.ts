import type { Aido } from "@aido/sdk";
import { expect, test } from "vitest";
import { DOCKER_CONFIG } from "./config.ts";
import { ContainerLayer } from "./container-layer.ts";
import { DockerError } from "./docker-error.ts";
import * as layer from "./index.ts";

test("S4-3 S4-4 S4-5 S4-6 S4-7 the defaults are the documented image, prefix, working directory and time limit", () => {
  expect(DOCKER_CONFIG).toMatchObject({
    image: "oven/bun:latest",
    containerPrefix: "coding-agent-",
    workdir: "/workspace",
    commandTimeoutMs: 60_000,
  });
});

test("S4-31 an error of the layer has its name, code and message, and only a failed start ends a session", () => {
  const error = new DockerError("no room", "CONTAINER_START_FAILED");
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: "DockerError", code: "CONTAINER_START_FAILED", message: "no room" });
  expect(error.recoverable).toBe(false);
  expect(new DockerError("late", "COMMAND_TIMEOUT").recoverable).toBe(true);
});

test("S4-27 S4-28 clean-up stops with ten seconds of grace, then removes", async () => {
  const asked: unknown[] = [];
  const sandboxes = {
    stop: async (...args: unknown[]) => asked.push(["stop", ...args]),
    destroy: async (...args: unknown[]) => asked.push(["destroy", ...args]),
  };
  const own = layer.createAgentLayer({ aido: { sandboxes } as unknown as Aido, log: () => undefined });
  await own.cleanupContainer("abc");
  expect(asked).toEqual([
    ["stop", "abc", { graceMs: 10_000 }],
    ["destroy", "abc"],
  ]);
});

test("S4-28 S4-29 a container that cannot be stopped is removed, and clean-up says what failed", async () => {
  const removed: unknown[] = [];
  const lines: string[] = [];
  const sandboxes = {
    stop: () => Promise.reject(new Error("the engine did not answer")),
    destroy: async (sandbox: string) => removed.push(sandbox),
  };
  const log = (line: string) => lines.push(line);
  const own = layer.createAgentLayer({ aido: { sandboxes } as unknown as Aido, log });
  await own.cleanupContainer("abc");
  expect(removed).toEqual(["abc"]);
  expect(lines).toContain("[Docker] Cleanup failed: the engine did not answer");
});

test("a tool's command ends with the session that is given up, and nothing is told to the model", async () => {
  const leaving = new AbortController();
  const execs = {
    start: (_sandbox: string, _request: object, options: { signal: AbortSignal }) =>
      new Promise((_, reject) => {
        options.signal.addEventListener("abort", () => reject(options.signal.reason));
      }),
  };
  const own = new ContainerLayer({ aido: async () => ({ execs }) as unknown as Aido });
  const call = { id: "1", name: "execute_command", arguments: { command: "sleep 600" } };
  const running = layer.executeTool(own, "abc", call, leaving.signal);
  leaving.abort();
  await expect(running).rejects.toMatchObject({ name: "AbortError" });
});

test("S4-37 the layer is a module of its own, with the names of its description", () => {
  const { startContainer, execInContainer, cleanupContainer, runSession } = layer;
  for (const each of [startContainer, execInContainer, cleanupContainer, runSession]) {
    expect(each).toBeTypeOf("function");
  }
});
