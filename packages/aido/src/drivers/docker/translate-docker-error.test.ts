import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { translateDockerError } from "./translate-docker-error.ts";

const ACTION = { doing: "creating sandbox sbx_1", sandboxId: "sbx_1", image: "tool:1", name: "aido-1" };
const translate = (thrown: unknown, more: object = {}) =>
  translateDockerError(thrown, { ...ACTION, address: "unix:///var/run/docker.sock", ...more });
const answer = (statusCode: number, message: string) =>
  Object.assign(new Error(`(HTTP code ${statusCode}) - ${message}`), { statusCode, json: { message } });

test.each([
  ["ENOENT", /systemctl start docker/],
  ["ECONNREFUSED", /systemctl start docker/],
  ["EACCES", /docker group/],
  ["ECONNRESET", /docker info/],
])("S0-85 %s on the engine's socket says what to do next", (code, hint) => {
  const error = translate(Object.assign(new Error(code), { code }));
  expect(error).toMatchObject({ code: "RUNTIME_UNAVAILABLE", hint: expect.stringMatching(hint) });
  expect(error.message).toContain("unix:///var/run/docker.sock");
});

test.each([
  [404, "No such image: tool:1", "IMAGE_NOT_FOUND"],
  [404, "No such container: abc", "CONTAINER_NOT_FOUND"],
  [409, 'Conflict. The container name "/aido-1" is already in use by container "x"', "CONTAINER_NAME_TAKEN"],
  [409, "Container abc is not running", "CONTAINER_NOT_RUNNING"],
  [400, "Unknown runtime specified runsc", "ISOLATION_UNAVAILABLE"],
  [400, "unknown or invalid runtime name: runsc", "ISOLATION_UNAVAILABLE"],
  [400, "invalid reference format", "VALIDATION_ERROR"],
  [500, "write /var/lib/docker/x: no space left on device", "DISK_FULL"],
  [500, "something else", "CONTAINER_CREATION_FAILED"],
])("an answer %i %j becomes %s", (status, message, code) => {
  const error = translate(answer(status, message), { code: "CONTAINER_CREATION_FAILED" });
  expect(error.code).toBe(code);
});

test("a failure without a better name keeps the engine's reason and the original", () => {
  const thrown = answer(500, "line one\nline \u001b[31mtwo\u0007");
  const error = translate(thrown, { code: "CONTAINER_START_FAILED", doing: "starting the sandbox" });
  expect(error.message).toBe("Starting the sandbox failed: line one line [31mtwo");
  expect(error.cause).toBe(thrown);
  expect(error.details).toEqual({ sandboxId: "sbx_1", image: "tool:1", name: "aido-1" });
});

test("an engine that does not answer in time is unavailable", () => {
  expect(translate(new Error("aborted"), { timeoutMs: 5_000 })).toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
    message: expect.stringContaining("within 5 s"),
  });
});

test("what is aido's own already stays as it is", () => {
  const own = new AidoError("UNSUPPORTED", "no");
  expect(translate(own)).toBe(own);
});
