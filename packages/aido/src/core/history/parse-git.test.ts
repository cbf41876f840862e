import { expect, test } from "vitest";
import { originalPath, shownName, storedName } from "./git-names.ts";
import { parseLog, parsePatch, parseTree } from "./parse-git.ts";

const ID = "a".repeat(40);
const RAW = `:100644 100644 ${ID} ${ID} M`;
const latin1 = (text: string) => Buffer.from(text, "latin1");

test("a log is read by its fields, whatever the names hold", () => {
  const body = "Update\n\nExecution ID: exec_1\nTimestamp: 2024-01-02T03:04:05.678Z\n";
  const output = `${ID}\x0012\0${body}\0\0\n${RAW}\0\n:odd\x01\0${RAW}\0${"b".repeat(40)}\0${"c".repeat(40)}\x0013\0plain\n\0\0`;
  expect(parseLog(latin1(output))).toEqual([
    {
      commitId: ID,
      execId: "exec_1",
      at: new Date("2024-01-02T03:04:05.678Z"),
      message: "Update",
      files: ["\n:odd\x01", "b".repeat(40)],
    },
    { commitId: "c".repeat(40), execId: "unknown", at: new Date(13_000), message: "plain", files: [] },
  ]);
  expect(parseLog(Buffer.alloc(0))).toEqual([]);
  expect(() => parseLog(latin1("not a log\0x\0y\0"))).toThrow("cannot be read");
});

test("a tree is read with names that hold tabs, newlines and any bytes", () => {
  const lines = `100644 blob ${ID}       5\ta\tb\n\x00120000 blob ${ID}       -\t\xff\0`;
  expect(parseTree(latin1(lines))).toEqual([
    { mode: "100644", id: ID, size: 5, path: "a\tb\n" },
    { mode: "120000", id: ID, size: 0, path: "\xff" },
  ]);
  expect(parseTree(latin1(`100644 blob ${ID}\tx\0`))).toMatchObject([{ size: undefined }]);
  expect(() => parseTree(latin1("nonsense\0"))).toThrow("cannot be read");
});

test("a patch is split by file; content that looks like a header and changes of kind do not confuse it", () => {
  const raw = `${RAW}\0one\0:100644 120000 ${ID} ${ID} T\0kind\0${RAW}\0__proto__\0`;
  const one = "diff --git a/one b/one\n@@ -1 +1 @@\n-diff --git a/x b/x\n+diff --git\n diff --git y\n";
  const kind = "diff --git a/kind b/kind\ndeleted file\ndiff --git a/kind b/kind\nnew file\n";
  const proto = "diff --git a/__proto__ b/__proto__\nBinary files differ\n";
  const parsed = parsePatch(latin1(raw), latin1(one + kind + proto));
  expect(Object.entries(parsed)).toEqual([
    ["one", one],
    ["kind", kind],
    ["__proto__", proto],
  ]);
  expect(() => parsePatch(latin1(`${RAW}\0one\0`), latin1(one + proto))).toThrow("cannot be read");
});

test("names are shown as they are when they are UTF-8, and as git quotes them when not", () => {
  const name = (bytes: Buffer) => shownName(bytes.toString("latin1"));
  expect(name(Buffer.from("é\n\"'\\"))).toBe("é\n\"'\\");
  expect(name(Buffer.from([0x61, 0xe9, 0x22, 0x5c, 0x0a]))).toBe('"a\\351\\"\\\\\\012"');
  expect(name(Buffer.from("\uFEFFbom"))).toBe("\uFEFFbom");
});

test("names that git refuses in a tree are stored as others, and come back", () => {
  for (const name of [".git", ".git%", ".git%%"]) {
    expect(storedName(name)).toBe(`${name}%`);
    expect(originalPath(`a/${storedName(name)}/b`)).toBe(`a/${name}/b`);
  }
  for (const path of [".gitignore", "x.git", "a/.github/b", "git", ".git%x"]) {
    expect(path.split("/").map(storedName).join("/")).toBe(path);
    expect(originalPath(path)).toBe(path);
  }
});
