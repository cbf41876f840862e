import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { deflate } from "./deflate.ts";

test("what is small is compressed at once, what is large in time, and all of it comes back", async () => {
  const header = Buffer.from("blob 1\0");
  const contents = [0, 1, 65_536, 65_537, 200_000, 200_001, 3_000_000].map((size) => randomBytes(size));
  const made = contents.map((content) => deflate(content, header));
  expect(made.map((bytes) => bytes instanceof Promise)).toEqual([
    ...[false, false, false],
    ...[true, true, true, true],
  ]);
  for (const [at, bytes] of (await Promise.all(made)).entries()) {
    const whole = Buffer.concat([header, contents[at] ?? Buffer.alloc(0)]);
    expect(inflateSync(bytes).equals(whole)).toBe(true);
  }
});

test("the loop goes round while something large is compressed", async () => {
  let isDone = false;
  const bytes = Promise.resolve(deflate(randomBytes(16 * 1024 * 1024))).finally(() => {
    isDone = true;
  });
  let turns = 0;
  for (; !isDone; turns++) await nextTurn();
  await bytes;
  expect(turns).toBeGreaterThan(10);
});
