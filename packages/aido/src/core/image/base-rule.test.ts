import { expect, test } from "vitest";
import { baseRule } from "./base-rule.ts";

test.each([
  ["python:3.12-slim", true],
  ["node", true],
  ["node:latest", true],
  ["node:20", false],
  ["registry.example/team/tool:1", true],
  ["registry.example/other/tool:1", false],
  ["evil/python:3", false],
  ["registryxexample/team/tool:1", false],
])("S3-85 with an allow-list, %s may be built from: %s", (image, isAllowed) => {
  const rule = baseRule(["python:*", "node:latest", "registry.example/team/*"]);
  if (isAllowed) expect(() => rule(image)).not.toThrow();
  else expect(() => rule(image)).toThrow("may not start from");
});

test("without a list every base will do", () => {
  expect(() => baseRule([])("anything")).not.toThrow();
});
