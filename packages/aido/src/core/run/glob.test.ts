import { expect, test } from "vitest";
import { compileGlob, matchesGlob } from "./glob.ts";

test.each([
  ["*.csv", "a.csv", true],
  ["*.csv", "d/a.csv", false],
  ["*.csv", ".hidden.csv", false],
  [".*.csv", ".hidden.csv", true],
  ["**/*.csv", "a.csv", true],
  ["**/*.csv", "d/e/a.csv", true],
  ["d/**", "d/e/f", true],
  ["d/**/f", "d/f", true],
  ["d/**/f", "d/e/g/f", true],
  ["?.txt", "a.txt", true],
  ["?.txt", "ab.txt", false],
  ["?.txt", "é.txt", true],
  ["[a-c]1", "b1", true],
  ["[!a-c]1", "b1", false],
  ["[^a-c]1", "d1", true],
  ["[z-a]1", "b1", false],
  ["[", "[", true],
  ["{a,b}.txt", "b.txt", true],
  ["{a,b{c,d}}.txt", "bd.txt", true],
  ["{a}.txt", "{a}.txt", true],
  ["x{,y}", "x", true],
  ["./a//b", "a/b", true],
  ["a.b", "axb", false],
  ["(a|b)+", "(a|b)+", true],
  ["\\*", "*", true],
  ["\\*", "a", false],
])("S0-14 the pattern %s against %s is %s", (pattern, path, fits) => {
  expect(matchesGlob(pattern, path)).toBe(fits);
});

test("braces that stand for too many alternatives are refused", () => {
  expect(compileGlob("{a,b}".repeat(20))).toBeUndefined();
});
