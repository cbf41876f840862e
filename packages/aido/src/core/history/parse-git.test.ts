import { expect, test } from "vitest";
import { originalPath, shownName, storedName } from "./git-names.ts";
import { parsePatch, parseTree } from "./parse-git.ts";

const ID = "a".repeat(40);
const RAW = `:100644 100644 ${ID} ${ID} M`;
const latin1 = (text: string) => Buffer.from(text, "latin1");

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

test.each(["\r", "\u2028", "\u2029", "\x85", "\f"])("content behind %j is no header of a patch", (end) => {
  const text = Buffer.from(`diff --git a/one b/one\n@@ -0,0 +1 @@\n+x${end}diff --git y\n`);
  const other = "diff --git a/two b/two\nBinary files differ\n";
  const patch = Buffer.concat([text, latin1(other)]);
  expect(parsePatch(latin1(`${RAW}\0one\0${RAW}\0two\0`), patch)).toEqual({
    one: text.toString(),
    two: other,
  });
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
