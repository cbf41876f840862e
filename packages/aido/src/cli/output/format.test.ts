import { expect, test } from "vitest";
import { formatAge, formatBytes, formatDuration, formatUntil } from "./format.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1 KiB"],
  [1536, "1.5 KiB"],
  [512 * 1024 ** 2, "512 MiB"],
  [3 * 1024 ** 5, "3072 TiB"],
])("%i bytes are written as %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test.each([
  [0, "0ms"],
  [340, "340ms"],
  [1500, "1.5s"],
  [9000, "9s"],
  [65_000, "1m 5s"],
  [3_600_000, "1h"],
  [90_061_000, "1d 1h"],
])("%i ms are written as %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("ages and remaining lives are relative to now", () => {
  const now = new Date("2026-01-01T00:10:00Z");
  expect(formatAge(new Date("2026-01-01T00:05:00Z"), now)).toBe("5m ago");
  expect(formatAge(now, now)).toBe("0s ago");
  expect(formatUntil(undefined, now)).toBe("never");
  expect(formatUntil(new Date("2026-01-01T00:09:00Z"), now)).toBe("now");
  expect(formatUntil(new Date("2026-01-01T01:10:00Z"), now)).toBe("1h");
});
