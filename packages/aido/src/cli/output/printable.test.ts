import { expect, test } from "vitest";
import { printable, printableJson, printableLines } from "./printable.ts";

test("terminal escapes in foreign text are shown, not obeyed", () => {
  expect(printable("a\u001b[31mred\u0007\r\n\u009b2J")).toBe("a\\x1b[31mred\\x07\\x0d\\x0a\\x9b2J");
});

test("text that hides or reorders itself is shown as escapes", () => {
  expect(printable("exe\u202egnp.sh\u200b\u2066")).toBe("exe\\u202egnp.sh\\u200b\\u2066");
});

test("letters of every script, and pairs of surrogates, stay as they are", () => {
  expect(printable("naïve 漢字 🚀 עברית")).toBe("naïve 漢字 🚀 עברית");
  expect(printable("\ud83d x \ude80")).toBe("\\ud83d x \\ude80");
});

test("messages in several lines keep their line breaks only", () => {
  expect(printableLines("one\ntwo\u001b[2J")).toBe("one\ntwo\\x1b[2J");
});

test("JSON says the same value without control characters", () => {
  const value = { name: "a\u009b\u202e\u007f\u001b", list: ["\u2028"] };
  const text = printableJson(value, 2);
  expect(text).toMatch(/^[\n -~]*$/);
  expect(JSON.parse(text)).toEqual(value);
});
