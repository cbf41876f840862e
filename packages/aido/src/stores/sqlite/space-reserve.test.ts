import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SpaceReserve } from "./space-reserve.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "aido-reserve-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

test("the space is taken once, for its owner alone, and given back once", () => {
  const path = join(directory, "reserve");
  const reserve = new SpaceReserve(path);
  reserve.keep();
  const { ino, blocks, mode } = statSync(path);
  expect(blocks * 512).toBeGreaterThanOrEqual(1_048_576);
  expect(mode & 0o777).toBe(0o600);
  new SpaceReserve(path).keep();
  expect(statSync(path).ino).toBe(ino);
  expect(reserve.release()).toBe(true);
  expect(reserve.release()).toBe(false);
});

test("a place that takes no file is left alone", () => {
  writeFileSync(join(directory, "file"), "");
  const reserve = new SpaceReserve(join(directory, "file", "reserve"));
  expect(() => reserve.keep()).not.toThrow();
  expect(reserve.release()).toBe(false);
});
