import { expect, test } from "vitest";
import { asCount, boundedLines, parseObject } from "./bounded-lines.ts";

async function linesOf(chunks: readonly string[], maxBytes = 100): Promise<string[]> {
  const lines: string[] = [];
  const bytes = (async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk, "latin1");
  })();
  for await (const line of boundedLines(bytes, maxBytes)) lines.push(line);
  return lines;
}

test("lines come whole however the bytes were cut, the last without its end too", async () => {
  expect(await linesOf(["a\nb", "c\n\nd", "\xc3", "\xa9"])).toEqual(["a", "bc", "", "dé"]);
  expect(await linesOf([])).toEqual([]);
});

test("a line over the limit is passed over and the next is read", async () => {
  expect(await linesOf(["x".repeat(60), "x".repeat(60), "\nok\n", "y".repeat(101)])).toEqual(["ok"]);
});

test("a line without end costs no memory", async () => {
  const before = process.memoryUsage().arrayBuffers;
  const chunk = Buffer.alloc(1024 * 1024, 0x78);
  const endless = (async function* () {
    for (let i = 0; i < 512; i += 1) yield Buffer.from(chunk);
  })();
  for await (const _ of boundedLines(endless, 4096)) throw new Error("there is no line");
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(400 * 1024 * 1024);
});

test("what is no JSON object is nothing, and no count is below zero or without end", () => {
  for (const line of ["", "text", "{", "[1]", "null", '"x"', "{]"]) expect(parseObject(line)).toBeUndefined();
  expect(parseObject(' {"a":1}')).toEqual({ a: 1 });
  expect([-1, Number.NaN, Number.POSITIVE_INFINITY, "7", 1.6, 1e300].map(asCount)).toEqual([
    0,
    0,
    0,
    0,
    2,
    Number.MAX_SAFE_INTEGER,
  ]);
});
