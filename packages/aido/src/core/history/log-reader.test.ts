import { expect, test } from "vitest";
import { LogReader } from "./log-reader.ts";

const ID = "a".repeat(40);
const OTHER = "c".repeat(40);
const latin1 = (text: string) => Buffer.from(text, "latin1");

function read(output: string, { maxBytes = 1000, chunk = 1000 } = {}) {
  const reader = new LogReader(maxBytes);
  const bytes = latin1(output);
  for (let at = 0; at < bytes.length; at += chunk) reader.push(bytes.subarray(at, at + chunk));
  return reader.entries;
}

test.each([1, 7, 1000])("a log is read by its fields, whatever the names hold, in pieces of %d", (chunk) => {
  const body = "Update\n\nExecution ID: exec_1\nTimestamp: 2024-01-02T03:04:05.678Z\n";
  const files = `\nM\0\nA\x01\0D\0${"b".repeat(40)}\0`;
  const output = `${ID}\x0012\0${body}\0\0${files}${OTHER}\x0013\0plain\n\0\0`;
  expect(read(output, { chunk })).toEqual([
    {
      commitId: ID,
      execId: "exec_1",
      at: new Date("2024-01-02T03:04:05.678Z"),
      message: "Update",
      files: ["\nA\x01", "b".repeat(40)],
    },
    { commitId: OTHER, execId: "unknown", at: new Date(13_000), message: "plain", files: [] },
  ]);
});

test("nothing is no entry, and what is no log is refused", () => {
  expect(read("")).toEqual([]);
  expect(() => read("not a log\0x\0y\0")).toThrow("cannot be read");
  expect(() => read("M\0file\0")).toThrow("cannot be read");
});

test("names beyond the limit are left out of their entries, which say so; no entry is", () => {
  const entry = (id: string, ...names: string[]) =>
    `${id}\x001\0x\0\0${names.map((name) => `M\0${name}\0`).join("")}`;
  const log = entry(ID, "one", "two", "three") + entry(OTHER, "four") + entry("d".repeat(40));
  expect(read(log, { maxBytes: 7 })).toMatchObject([
    { files: ["one", "two"], truncated: true },
    { files: [], truncated: true },
    { files: [] },
  ]);
  expect(read(log, { maxBytes: 7 })[2]).not.toHaveProperty("truncated");
});
