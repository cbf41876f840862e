import { expect, test } from "vitest";
import { parseBytes } from "./bytes.ts";
import { parseDuration } from "./duration.ts";
import { parseNumber } from "./numbers.ts";
import { parsePairs } from "./pairs.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["20m", 1_200_000],
  ["1.5h", 5_400_000],
  ["2d", 172_800_000],
  ["0", 0],
  ["never", 0],
])("the duration %s is %i ms", (text, ms) => {
  expect(parseDuration(text, "--ttl")).toBe(ms);
});

test.each(["", "5", "m", "-5m", "5 m", "0s", "0.1ms", "1e3s", "366d", "5min", "٣s"])(
  "the duration %j is refused with the option's name",
  (text) => {
    expect(() => parseDuration(text, "--ttl")).toThrowError(/--ttl/);
  },
);

test.each([
  ["1024", 1024],
  ["512m", 512 * 1024 ** 2],
  ["1GiB", 1024 ** 3],
  ["1.5g", 1.5 * 1024 ** 3],
  ["64KB", 64 * 1024],
  ["10b", 10],
])("the size %s is %i bytes", (text, bytes) => {
  expect(parseBytes(text, "--memory")).toBe(bytes);
});

test.each(["", "m", "-1", "0", "1x", "1e9", "99999999t"])("the size %j is refused", (text) => {
  expect(() => parseBytes(text, "--memory")).toThrowError(/--memory/);
});

test("pairs keep everything after the first equals sign", () => {
  expect(parsePairs(["A=1", "B=x=y", "C="], "--env")).toEqual({ A: "1", B: "x=y", C: "" });
});

test("a name alone takes its value from the environment, and a missing one is refused", () => {
  const lookup = (name: string) => (name === "TOKEN" ? "secret" : undefined);
  expect(parsePairs(["TOKEN"], "--env", lookup)).toEqual({ TOKEN: "secret" });
  expect(() => parsePairs(["OTHER"], "--env", lookup)).toThrowError(/OTHER/);
  expect(() => parsePairs(["TOKEN"], "--label")).toThrowError(/--label/);
});

test("a variable called __proto__ is only a variable", () => {
  const pairs = parsePairs(["__proto__=x"], "--env");
  expect(Object.keys(pairs)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(pairs)).toBe(Object.prototype);
});

test("numbers stay within their range", () => {
  expect(parseNumber("0.5", "--cpus", { least: 0.01, most: 1024 })).toBe(0.5);
  for (const text of ["", "abc", "0", "-1", "1e3", "2000"]) {
    expect(() => parseNumber(text, "--cpus", { least: 0.01, most: 1024 })).toThrowError(/--cpus/);
  }
  expect(() => parseNumber("1.5", "--pids", { least: 1, most: 10, whole: true })).toThrowError(/--pids/);
});
