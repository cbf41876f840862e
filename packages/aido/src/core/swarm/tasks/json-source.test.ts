import { expect, test } from "vitest";
import { type JsonNode, lineAt, parseJsonSource } from "./json-source.ts";

test.each([
  '{"a": [1, -2.5e3, true, false, null, "x\\n\\u00e4\\"", {}, []], "b": {"c": ""}}',
  " [ ] ",
  "0",
  '"text"',
  `"${"x".repeat(1_000_000)}"`,
  `"${"\\n".repeat(400_000)}"`,
])("reads what JSON.parse reads (%#)", (text) => {
  expect(plain(parseJsonSource(text))).toEqual(JSON.parse(text));
});

test.each([
  "",
  "{",
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  "[1,]",
  "[1 2]",
  "01",
  "+1",
  "1.",
  "tru",
  "'a'",
  '"a\nb"',
  '"\\x"',
  '"\\u12"',
  "{} {}",
  "\ufeff{}",
  "NaN",
  "[",
])("refuses %j, as JSON.parse does", (text) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(() => parseJsonSource(text)).toThrow(expect.objectContaining({ offset: expect.any(Number) }));
});

test("refuses a name that occurs twice and nesting without end", () => {
  expect(() => parseJsonSource('{"a": 1,\n "a": 2}')).toThrow('has "a" twice');
  expect(() => parseJsonSource('{"a": 1, "\\u0061": 2}')).toThrow("twice");
  expect(() => parseJsonSource("[".repeat(100_000))).toThrow("nested");
});

test("knows where each value stands", () => {
  const text = '{\n  "a": "x"\n}';
  const node = (parseJsonSource(text).value as ReadonlyMap<string, JsonNode>).get("a") as JsonNode;
  expect(text.slice(node.start, node.end)).toBe('"x"');
  expect(lineAt(text, node.start)).toBe(2);
  expect(lineAt(text, 0)).toBe(1);
});

function plain({ value }: JsonNode): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, node]) => [key, plain(node)]));
  return Array.isArray(value) ? (value as readonly JsonNode[]).map(plain) : value;
}
