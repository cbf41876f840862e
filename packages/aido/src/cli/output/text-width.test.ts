import { expect, test } from "vitest";
import { textWidth, truncate } from "./text-width.ts";

test.each([
  ["abc", 3],
  ["漢字", 4],
  ["e\u0301", 1],
  ["✅ ok", 5],
  ["🚀", 2],
  ["🟢", 2],
  ["✓ ▸ ✗ ·", 7],
  ["█▓▒░│", 5],
])("%s takes %i columns", (text, columns) => {
  expect(textWidth(text)).toBe(columns);
});

test("a wide letter that does not fit is cut as a whole", () => {
  expect(truncate("a漢字", 3)).toBe("a…");
  expect(truncate("a漢字", 4)).toBe("a漢…");
  expect(truncate("abc", 0)).toBe("");
});
