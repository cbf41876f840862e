import { expect, test } from "vitest";
import { truncateOutput } from "./truncate-output.ts";

test("S4-20 output of 10,000 characters is left alone", () => {
  const text = "x".repeat(10_000);
  expect(truncateOutput(text)).toBe(text);
});

test("S4-18 S4-20 longer output is cut with the marker", () => {
  expect(truncateOutput("x".repeat(10_001))).toBe(`${"x".repeat(10_000)}\n[...truncated at 10000 chars...]`);
});

test("a character outside the basic plane is not cut in half", () => {
  const cut = truncateOutput(`${"x".repeat(9)}😀 and more`, 10);
  expect(cut).toBe(`${"x".repeat(9)}\n[...truncated at 10 chars...]`);
});
