import type { CreateSandbox } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { checkRequest } from "./check-request.ts";
import { resolveImage } from "./resolve-image.ts";

const BAD_NAMES = [
  "",
  "../x",
  "a/b",
  "a\0b",
  "a\nb",
  "a\u001b[31m",
  "📦",
  "-a",
  ".a",
  "a b",
  "é",
  "a".repeat(64),
];

describe("a request", () => {
  test.each(BAD_NAMES)("with the name %j is refused, with what a name may be", (name) => {
    for (const request of [{ name }, { id: name }]) {
      expect(() => checkRequest(request)).toThrow(
        expect.objectContaining({
          code: "VALIDATION_ERROR",
          message: expect.stringContaining("must begin with a letter or digit"),
        }),
      );
    }
  });

  test.each(["a", "web-1", "A.b_c-9", `sandbox-${"0".repeat(36)}`])("may have the name %s", (name) => {
    checkRequest({ name, id: name });
  });

  test.each<[CreateSandbox, string]>([
    [{ limits: { cpus: 0 } }, "INVALID_CPU_LIMIT"],
    [{ limits: { cpus: Number.NaN } }, "INVALID_CPU_LIMIT"],
    [{ limits: { cpus: 2000 } }, "INVALID_CPU_LIMIT"],
    [{ limits: { memoryBytes: 1024 } }, "INVALID_MEMORY_LIMIT"],
    [{ limits: { memoryBytes: 1e30 } }, "INVALID_MEMORY_LIMIT"],
    [{ limits: { pids: 1 } }, "VALIDATION_ERROR"],
    [{ limits: { diskBytes: -1 } }, "VALIDATION_ERROR"],
    [{ limits: { openFiles: 1.5 } }, "VALIDATION_ERROR"],
    [{ ttlMs: -1 }, "VALIDATION_ERROR"],
    [{ ttlMs: 1e300 }, "VALIDATION_ERROR"],
    [{ workdir: "work" }, "VALIDATION_ERROR"],
    [{ workdir: "/" }, "VALIDATION_ERROR"],
    [{ workdir: "/a/../b" }, "VALIDATION_ERROR"],
    [{ workdir: "/a//b" }, "VALIDATION_ERROR"],
    [{ workdir: "/proc/self" }, "VALIDATION_ERROR"],
    [{ workdir: "/run/aido" }, "VALIDATION_ERROR"],
    [{ user: "a:b" }, "VALIDATION_ERROR"],
    [{ user: "4294967295" }, "VALIDATION_ERROR"],
    [{ user: "1:99999999999" }, "VALIDATION_ERROR"],
    [{ env: { "A=B": "" } }, "VALIDATION_ERROR"],
    [{ env: { "": "" } }, "VALIDATION_ERROR"],
    [{ env: { A: "\0" } }, "VALIDATION_ERROR"],
    [{ env: { A: "x".repeat(300_000) } }, "VALIDATION_ERROR"],
    [{ labels: { "a b": "" } }, "VALIDATION_ERROR"],
    [{ labels: { a: "1\n2" } }, "VALIDATION_ERROR"],
    [{ network: "everything" as "none" }, "VALIDATION_ERROR"],
    [{ isolation: "strong" as "kata" }, "VALIDATION_ERROR"],
    [{ profile: "mine" as "aido" }, "VALIDATION_ERROR"],
  ])("%j is refused", (request, code) => {
    expect(() => checkRequest(request)).toThrow(expect.objectContaining({ code }));
  });

  test("with everything set as it should be passes", () => {
    checkRequest({
      id: "abc",
      name: "web",
      profile: "server",
      image: "x",
      isolation: "gvisor",
      workdir: "/home/sandbox",
      user: "1000:1000",
      env: { A: "b" },
      network: "bridge",
      limits: {
        cpus: 0.5,
        memoryBytes: 64 * 1024 * 1024,
        pids: 10,
        diskBytes: 0,
        openFiles: 64,
        outputBytes: 0,
      },
      ttlMs: 0,
      labels: { "dev.example/a-b": "c d" },
    });
  });
});

describe("an image", () => {
  test.each([
    ["python", "python:3.12-slim"],
    ["node", "node:20-slim"],
    ["bash", "ubuntu:22.04"],
    ["@ai-sandbox/python", "python:3.12-slim"],
    ["@ai-sandbox/javascript:latest", "node:20-slim"],
    ["registry.example:5000/team/x@sha256:abc", "registry.example:5000/team/x@sha256:abc"],
    ["toString", "toString"],
  ])("S0-19 S0-20 S0-21 S0-22 %s is %s", (name, image) => {
    expect(resolveImage(name)).toBe(image);
  });

  test.each(["", "-v", "a b", "a\n", "@ai-sandbox/cobol", "@ai-sandbox/toString", "$(id)"])(
    "named %j is refused",
    (name) => {
      expect(() => resolveImage(name)).toThrow(
        expect.objectContaining({ code: name.startsWith("@") ? "IMAGE_NOT_FOUND" : "VALIDATION_ERROR" }),
      );
    },
  );
});
