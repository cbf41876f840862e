import { describe, expect, test } from "vitest";
import { bytes, duration, flag, numberFrom, oneOf, seconds, text, uint64, url } from "./value-kinds.ts";

describe("a value", () => {
  test.each([
    [duration, "500ms", 500],
    [duration, "20m", 1_200_000],
    [duration, "1.5h", 5_400_000],
    [duration, "2d", 172_800_000],
    [duration, 0, 0],
    [duration, "5", undefined],
    [duration, "m", undefined],
    [duration, "-1s", undefined],
    [duration, 5, undefined],
    [bytes, "512m", 512 * 1024 * 1024],
    [bytes, "4GiB", 4 * 1024 ** 3],
    [bytes, "10", 10],
    [bytes, 10, 10],
    [bytes, 1.5, undefined],
    [bytes, "-1", undefined],
    [bytes, "999999999999999t", undefined],
    [uint64, "18446744073709551615", "18446744073709551615"],
    [uint64, "18446744073709551616", undefined],
    [uint64, "007", "7"],
    [uint64, 7, "7"],
    [uint64, -1, undefined],
    [uint64, "0x7", undefined],
    [seconds, "30", 30_000],
    [seconds, "30s", undefined],
    [flag, "1", true],
    [flag, "false", false],
    [flag, "yes", undefined],
    [url, "https://x", "https://x"],
    [url, "ftp://x", undefined],
    [url, "x", undefined],
    [text, "", undefined],
    [text, 3, undefined],
    [oneOf("a", "b"), "b", "b"],
    [oneOf("a", "b"), "c", undefined],
    [numberFrom(1, { whole: true }), "2", 2],
    [numberFrom(1, { whole: true }), 1.5, undefined],
    [numberFrom(1, { whole: true }), "0", undefined],
    [numberFrom(0.01, { whole: false }), "0.5", 0.5],
    [numberFrom(0, { whole: false }), "1e3", undefined],
  ] as const)("%# is read as people write it", (kind, value, expected) => {
    expect(kind.read(value)).toBe(expected);
  });
});
