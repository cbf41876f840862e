import { expect, test } from "vitest";
import { SystemClock } from "../../system-clock.ts";
import { LogLines } from "./log-lines.ts";

const bytes = (text: string) => Buffer.from(text);

test("lines come whole out of chunks of any size, blank ones not at all", () => {
  const lines = new LogLines(new SystemClock());
  expect(lines.push(bytes("one\n\ntw"))).toEqual(["one"]);
  expect(lines.push(bytes("o\r\nth"))).toEqual(["two"]);
  expect(lines.end()).toEqual(["th"]);
  expect(lines.end()).toEqual([]);
});

test("a line without end takes no memory, and its beginning is told", () => {
  const lines = new LogLines(new SystemClock());
  for (let index = 0; index < 1000; index += 1) expect(lines.push(bytes("x".repeat(10_000)))).toEqual([]);
  expect(lines.push(bytes("\n"))).toEqual(["x".repeat(2000)]);
});

test("of a flood some lines a second are told, and how many were not", () => {
  let now = 0;
  const lines = new LogLines({ now: () => new Date(now), sleep: async () => undefined });
  expect(lines.push(bytes("line\n".repeat(1000)))).toHaveLength(50);
  now = 1000;
  expect(lines.push(bytes("next\n"))).toEqual(["(950 lines left out)", "next"]);
});
