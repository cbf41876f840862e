import { expect, test } from "vitest";
import { namesDirectory, parseCopySide } from "./copy-side.ts";

test.each([
  ["web:/work/a", "web", "/work/a"],
  ["web:a:b", "web", "a:b"],
  ["web:", "web", "."],
  ["./a:b", undefined, "./a:b"],
  ["/tmp/a:b", undefined, "/tmp/a:b"],
  [":x", undefined, ":x"],
  ["plain", undefined, "plain"],
])("%j is a path of sandbox %j: %j", (text, sandbox, path) => {
  expect(parseCopySide(text)).toEqual({ sandbox, path });
});

test.each([
  ["dir/", true],
  [".", true],
  ["a/..", true],
  ["a/.", true],
  ["a", false],
  ["a.", false],
  [".hidden", false],
])("%j is written as a directory: %s", (path, expected) => {
  expect(namesDirectory(path)).toBe(expected);
});
