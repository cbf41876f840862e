import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { logTo } from "./log-to.ts";

test("a log that nobody reads takes little memory, and says how much of it is missing", () => {
  const stream = new PassThrough({ highWaterMark: 16 });
  const log = logTo(stream);
  for (let count = 0; count < 3_000; count += 1) log("x".repeat(1024));
  expect(stream.writableLength).toBeLessThan(1.1 * 1024 * 1024);
  while (stream.read() !== null);
  log("heard again");
  const lines = (stream.read() as Buffer).toString().split("\n");
  expect(lines.filter((line) => !line.startsWith("x"))).toEqual([
    expect.stringMatching(/^\(19\d\d lines left out, because nobody read them\)$/),
    "heard again",
    "",
  ]);
});
