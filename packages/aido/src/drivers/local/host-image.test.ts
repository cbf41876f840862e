import { expect, test } from "vitest";
import { hostRuntime, hostStandIn } from "./host-image.ts";

test.each([
  ["python:3.12-slim", "python3"],
  ["python", "python3"],
  ["docker.io/library/python:3.12", "python3"],
  ["@ai-sandbox/python", "python3"],
  ["node:20-slim", "node"],
  ["@ai-sandbox/node:latest", "node"],
  ["ubuntu:22.04", "bash"],
  ["bash", "bash"],
  ["golang:1.24-alpine", "go"],
  ["rust:1-slim", "cargo"],
  ["eclipse-temurin:21-jdk-alpine", "java"],
  ["ruby:3.4-slim", "ruby"],
])("S3-81 %s means the host's own %s", (image, program) => {
  expect(hostRuntime(image)?.program).toBe(program);
});

test("host needs nothing besides the host", () => {
  expect(hostRuntime("host")).toBeUndefined();
});

test.each(["redis:7", "ghcr.io/team/python", "python/evil", "oven/bun:latest", "toString", ""])(
  "%j is an image that only an engine has",
  (image) => {
    expect(() => hostRuntime(image)).toThrowError(expect.objectContaining({ code: "IMAGE_NOT_FOUND" }));
  },
);

test("S0-72 what stands for an image is named: the host's program, or the host", () => {
  expect(hostStandIn("ubuntu:22.04")).toMatch(/^host \/.*bash$/);
  expect(hostStandIn("redis:7")).toBe("host");
  expect(hostStandIn("host")).toBeUndefined();
});
