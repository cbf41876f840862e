import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { extractTar } from "./extract-tar.ts";
import { hostEntries } from "./host-entries.ts";
import { type NewTarEntry, writeTar } from "./write-tar.ts";

type Draft = Partial<NewTarEntry> & { name: string; text?: string; flag?: string };

async function* entries(drafts: readonly Draft[]): AsyncGenerator<NewTarEntry> {
  for (const { text, ...draft } of drafts) {
    const bytes = Buffer.from(text ?? "");
    yield {
      type: "file",
      mode: 0o644,
      size: bytes.length,
      modifiedAt: new Date("2026-01-01T00:00:00Z"),
      content: (async function* () {
        yield bytes;
      })(),
      ...draft,
    };
  }
}

async function bytesOf(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The archive in small pieces, so that nothing depends on where chunks end. */
async function* pieces(bytes: Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function directory() {
  const path = await mkdtemp(join(tmpdir(), "aido-tar-"));
  await mkdir(join(path, "target"));
  return {
    path,
    target: join(path, "target"),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

async function extract(target: string, drafts: readonly Draft[]) {
  return extractTar(pieces(await bytesOf(writeTar(entries(drafts)))), target);
}

/** Sets the type of the archive's first entry, with a valid checksum. */
function withFlag(archive: Buffer, flag: string): Buffer {
  archive.write(flag, 156, "latin1");
  archive.write("        ", 148, "latin1");
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return archive;
}

test("files, directories and inner links come out as they went in, without special bits", async () => {
  await using dir = await directory();
  const result = await extract(dir.target, [
    { name: "sub", type: "directory", mode: 0o500 },
    { name: "sub/run.sh", text: "echo hi", mode: 0o4755 },
    { name: "empty" },
    { name: "sub/link", type: "symlink", target: "../empty" },
  ]);
  expect(result).toEqual({ files: 2, bytes: 7, skipped: [] });
  expect(await readFile(join(dir.target, "sub/run.sh"), "utf8")).toBe("echo hi");
  expect((await lstat(join(dir.target, "sub/run.sh"))).mode & 0o7777).toBe(0o755);
  expect((await lstat(join(dir.target, "sub"))).mode & 0o777).toBe(0o700);
  expect(await readlink(join(dir.target, "sub/link"))).toBe("../empty");
  expect((await readdir(dir.target)).sort()).toEqual(["empty", "sub"]);
});

test.each(["../evil", "/etc/evil", "a/../../evil", "..", "a/../b", "x".repeat(300)])(
  "an entry called %j is refused and leaves nothing outside",
  async (name) => {
    await using dir = await directory();
    await expect(extract(dir.target, [{ name, text: "x" }])).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(await readdir(dir.path)).toEqual(["target"]);
    expect(await readdir(dir.target)).toEqual([]);
  },
);

test.each(["/etc", "../..", "..", "../outside", "a/../..", "sub/..", ".//..", "/"])(
  "a link to %j is left out and reported",
  async (target) => {
    await using dir = await directory();
    const result = await extract(dir.target, [{ name: "link", type: "symlink", target }]);
    expect(result.skipped.map(({ name }) => name)).toEqual(["link"]);
    expect(await readdir(dir.target)).toEqual([]);
  },
);

test("a file is not written through a link that came before it", async () => {
  await using dir = await directory();
  await mkdir(join(dir.target, "real"));
  const attempt = extract(dir.target, [
    { name: "link", type: "symlink", target: "real" },
    { name: "link/file", text: "x" },
  ]);
  await expect(attempt).rejects.toMatchObject({ code: "INVALID_PATH" });
  expect(await readdir(join(dir.target, "real"))).toEqual([]);
});

test("a file of the same name replaces a link and never writes through it", async () => {
  await using dir = await directory();
  await writeFile(join(dir.path, "outside"), "mine");
  await symlink("../outside", join(dir.target, "file"));
  await extract(dir.target, [{ name: "file", text: "theirs" }]);
  expect(await readFile(join(dir.path, "outside"), "utf8")).toBe("mine");
  expect((await lstat(join(dir.target, "file"))).isFile()).toBe(true);
});

test("a directory that is a link here is not entered", async () => {
  await using dir = await directory();
  await mkdir(join(dir.path, "outside"));
  await symlink("../outside", join(dir.target, "sub"));
  await expect(extract(dir.target, [{ name: "sub/file", text: "x" }])).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
  await expect(extract(dir.target, [{ name: "sub", type: "directory" }])).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
  expect(await readdir(join(dir.path, "outside"))).toEqual([]);
});

test("further names of a file that came out are made, of nothing else", async () => {
  await using dir = await directory();
  await writeFile(join(dir.target, "mine"), "mine");
  const plain = await bytesOf(writeTar(entries([{ name: "sub/file", text: "one" }])));
  const second = (name: string, target: string) =>
    bytesOf(writeTar(entries([{ name, target }]))).then((each) => withFlag(each, "1").subarray(0, 512));
  const links = [
    await second("again", "sub/file"),
    await second("again", "./sub/file"),
    await second("sub/third", "again"),
    await second("theirs", "mine"),
    await second("up", "sub/../mine"),
  ];
  const archive = Buffer.concat([plain.subarray(0, 1024), ...links, Buffer.alloc(1024)]);
  const result = await extractTar(pieces(archive), dir.target);
  expect(result.skipped.map(({ name }) => name)).toEqual(["theirs", "up"]);
  expect((await readdir(dir.target)).sort()).toEqual(["again", "mine", "sub"]);
  expect((await readdir(join(dir.target, "sub"))).sort()).toEqual(["file", "third"]);
  const { ino, nlink } = await lstat(join(dir.target, "again"));
  expect(nlink).toBe(3);
  expect((await lstat(join(dir.target, "sub/third"))).ino).toBe(ino);
});

test("a link that took a file's place gets no further name, from which it would lead outside", async () => {
  await using dir = await directory();
  const first = await bytesOf(
    writeTar(
      entries([
        { name: "a/b/file", text: "one" },
        { name: "a/b/file", type: "symlink", target: "../../x" },
      ]),
    ),
  );
  const second = withFlag(await bytesOf(writeTar(entries([{ name: "up", target: "a/b/file" }]))), "1");
  const archive = Buffer.concat([first.subarray(0, -1024), second]);
  const result = await extractTar(pieces(archive), dir.target);
  expect(result.skipped.map(({ name }) => name)).toEqual(["up"]);
  expect(await readdir(dir.target)).toEqual(["a"]);
});

test.each(["1", "3", "4", "6"])("an entry of type %s (hard link, device, pipe) is left out", async (flag) => {
  await using dir = await directory();
  const archive = await bytesOf(
    writeTar(entries([{ name: "odd", target: "/etc/passwd" }, { name: "good" }])),
  );
  const result = await extractTar(pieces(withFlag(archive, flag)), dir.target);
  expect(result.skipped).toHaveLength(1);
  expect(await readdir(dir.target)).toEqual(["good"]);
});

test("a name in an extended header is checked like any other", async () => {
  await using dir = await directory();
  const long = `${"../".repeat(60)}etc/evil`;
  await expect(extract(dir.target, [{ name: long, text: "x" }])).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
});

test("a global header cannot rename later entries", async () => {
  await using dir = await directory();
  const named = await bytesOf(writeTar(entries([{ name: `${"n".repeat(120)}é`, text: "x" }])));
  const archive = Buffer.concat([
    withFlag(named, "g").subarray(0, 1024),
    await bytesOf(writeTar(entries([{ name: "own" }]))),
  ]);
  await extractTar(pieces(archive), dir.target);
  expect(await readdir(dir.target)).toEqual(["own"]);
});

test("a broken or cut archive ends with an error and no half-written file", async () => {
  await using dir = await directory();
  const whole = await bytesOf(writeTar(entries([{ name: "file", text: "y".repeat(2000) }])));
  for (const cut of [0, 100, 512, 700, 2400]) {
    await expect(extractTar(pieces(whole.subarray(0, cut)), dir.target)).rejects.toMatchObject({
      code: "FILE_DOWNLOAD_FAILED",
    });
  }
  const flipped = Buffer.from(whole);
  flipped[3] = 0x7f;
  await expect(extractTar(pieces(flipped), dir.target)).rejects.toMatchObject({
    code: "FILE_DOWNLOAD_FAILED",
  });
  expect(await readdir(dir.target)).toEqual([]);
});

test("an extended header that claims a gigabyte is refused before it is read", async () => {
  await using dir = await directory();
  const archive = await bytesOf(writeTar(entries([{ name: "x" }])));
  archive.write("07777777777", 124, "latin1");
  await expect(extractTar(pieces(withFlag(archive, "x")), dir.target)).rejects.toThrowError(/too long/);
});

test("a tree that is packed here comes out the same, odd names included", async () => {
  await using dir = await directory();
  const source = join(dir.path, "source");
  const odd = `name with ${"é".repeat(60)} "quotes"\nand a line`;
  await mkdir(join(source, "a/b"), { recursive: true });
  await writeFile(join(source, "a/b", odd), "odd");
  await writeFile(join(source, "a/large"), Buffer.alloc(200_001, 7));
  await symlink("b", join(source, "a/inner"));
  await symlink("/etc", join(source, "a/outer"));
  const skipped: string[] = [];
  const packed = writeTar(
    hostEntries(source, { onSkip: (name) => skipped.push(name), onFile: () => undefined }),
  );
  await extractTar(packed, dir.target);
  expect(skipped).toEqual(["a/outer"]);
  expect(await readFile(join(dir.target, "a/b", odd), "utf8")).toBe("odd");
  expect(await readFile(join(dir.target, "a/large"))).toEqual(Buffer.alloc(200_001, 7));
  expect(await readlink(join(dir.target, "a/inner"))).toBe("b");
});
