import { expect, test } from "vitest";
import { missingOutputs } from "./missing-outputs.ts";

test("S0-15 a declared directory is there when anything in it is, a pattern when a file fits", async () => {
  const declared = ["plots/", "report.md", "*.csv", "none/"];
  expect(await missingOutputs(declared, ["plots/a/b.png", "x.csv"])).toEqual(["report.md", "none/"]);
});

test("names that a sandbox chose to be slow to compare keep nobody waiting", async () => {
  const files = Array.from({ length: 2_000 }, (_, i) => `${"a".repeat(250)}${i}`);
  let turns = 0;
  const others = setInterval(() => turns++);
  try {
    expect(await missingOutputs([`${"*a".repeat(60)}*b`, "*0"], files)).toHaveLength(1);
    expect(turns).toBeGreaterThan(0);
  } finally {
    clearInterval(others);
  }
});
