import { expect, test } from "vitest";
import { compileGlob, globFits } from "./glob.ts";

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
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["*", "", true],
  ["a**", "a", true],
  ["[a-]x", "-x", true],
  ["[]a]x", "]x", true],
  ["[!]x", "[!]x", false],
  ["[!]x]", "yx]", true],
  ["[a&~]x", "&x", true],
  ["?.txt", "🎈.txt", true],
  ["[🎈-🎊]", "🎉", true],
  ["**", "a/.b/c", true],
  ["**/a/**/b", "a/a/c/b", true],
  ["**/a/**/b", "b/a", false],
])("S0-14 the pattern %s against %s is %s", (pattern, path, fits) => {
  expect(globFits(compileGlob(pattern) ?? [], path)).toBe(fits);
});

test("braces that stand for too many alternatives are refused", () => {
  expect(compileGlob("{a,b}".repeat(20))).toBeUndefined();
});

test("names and patterns made to be tried in every way are answered", () => {
  const name = "a".repeat(255);
  const wild = compileGlob(`${"*a".repeat(100)}*b`) ?? [];
  const deep = compileGlob(`${"**/a/".repeat(100)}b`) ?? [];
  for (let i = 0; i < 1_000; i++) {
    expect(globFits(wild, name)).toBe(false);
    expect(globFits(deep, "a/".repeat(200))).toBe(false);
  }
});
