import { expect, test } from "vitest";
import { DOCKER_CONFIG } from "./config.ts";
import { DockerError } from "./docker-error.ts";

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
