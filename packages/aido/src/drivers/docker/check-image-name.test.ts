import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { checkImageName } from "./check-image-name.ts";

test.each([
  "alpine",
  "python:3.12-slim",
  "oven/bun:latest",
  "127.0.0.1:5000/team/tool:1",
  "[::1]:5000/tool",
  "registry.example.com/a/b/c__d.e-f",
  `debian@sha256:${"a".repeat(64)}`,
  `debian:12@sha256:${"a".repeat(64)}`,
  `sha256:${"0".repeat(64)}`,
])("%s is an image name", (image) => {
  expect(() => checkImageName(image)).not.toThrow();
});

test.each([
  "",
  "a b",
  "../containers/json?x=",
  "a/../b",
  "a//b",
  "/a",
  "a/",
  "x:y:z",
  "x?fromSrc=-",
  "x#y",
  "UPPER",
  "a\nb",
  "a%2fb",
  `a${"b".repeat(600)}`,
])("%j is refused before any request is made", (image) => {
  expect(() => checkImageName(image)).toThrow(
    expect.toSatisfy((error: unknown) => isAidoError(error, "VALIDATION_ERROR")),
  );
});
