import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAgentBed } from "../../../test/exec/agent-bed.ts";
import { SANDBOX, until } from "../../../test/exec/exec-bed.ts";

/** The real supervisor's tools on a directory of this machine. */
async function open() {
  const at = await openAgentBed();
  return { ...at, files: at.bed.files };
}

async function everything(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

test("a file of 20 MiB is written and read back unchanged, through broken connections", async () => {
  await using at = await open();
  const content = Buffer.alloc(20_971_520);
  for (let i = 0; i < content.length; i += 4) content.writeUInt32LE(i * 7, i);
  const parts = async function* () {
    for (let i = 0; i < content.length; i += 700_000) {
      yield content.subarray(i, i + 700_000);
      if (i === 7_000_000) at.bed.driver.dropConnections();
    }
  };
  await at.files.write(SANDBOX, "deep/down/big", parts(), { mode: 0o640 });
  const info = await stat(join(at.workdir, "deep/down/big"));
  expect([info.size, info.mode & 0o777]).toEqual([content.length, 0o640]);
  const hash = createHash("sha256");
  let chunks = 0;
  for await (const chunk of at.files.read(SANDBOX, "deep/down/big")) {
    hash.update(chunk);
    chunks += 1;
    if (chunks === 20) at.bed.driver.dropConnections();
  }
  expect(hash.digest("hex")).toBe(createHash("sha256").update(content).digest("hex"));
});

test("a write whose source breaks off leaves the old file and nothing else", async () => {
  await using at = await open();
  await at.files.write(SANDBOX, "kept", Buffer.from("old"));
  const failing = async function* () {
    yield Buffer.alloc(200_000);
    throw new Error("the upload broke off");
  };
  await expect(at.files.write(SANDBOX, "kept", failing())).rejects.toThrow("the upload broke off");
  expect(await readFile(join(at.workdir, "kept"), "utf8")).toBe("old");
  await until("no other file is left", async () => (await readdir(at.workdir)).length === 1);
});

test("stat and list tell what is there", async () => {
  await using at = await open();
  await mkdir(join(at.workdir, "d"));
  await writeFile(join(at.workdir, "d/ünï code"), "12345");
  await chmod(join(at.workdir, "d/ünï code"), 0o751);
  await symlink("../elsewhere", join(at.workdir, "d/link"));
  expect(await at.files.stat(SANDBOX, "d/ünï code")).toMatchObject({ type: "file", size: 5, mode: 0o751 });
  expect(await at.files.stat(SANDBOX, join(at.workdir, "d"))).toMatchObject({ type: "directory" });
  const all = await at.files.list(SANDBOX, ".", { recursive: true });
  expect(all.map(({ path, type, target }) => [path, type, target])).toEqual([
    ["d", "directory", undefined],
    ["d/link", "symlink", "../elsewhere"],
    ["d/ünï code", "file", undefined],
  ]);
  const { mtimeMs } = await stat(join(at.workdir, "d/ünï code"));
  expect(all[2]?.modifiedAt.getTime()).toBe(Math.floor(mtimeMs));
});

test("errors have the codes of their causes", async () => {
  await using at = await open();
  await at.files.mkdir(SANDBOX, "dir/inner");
  await at.files.mkdir(SANDBOX, "dir/inner");
  await expect(everything(at.files.read(SANDBOX, "none"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  await expect(everything(at.files.read(SANDBOX, "dir"))).rejects.toMatchObject({ code: "INVALID_PATH" });
  await expect(at.files.write(SANDBOX, "dir", Buffer.from("x"))).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
  await expect(at.files.stat(SANDBOX, "none")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  await symlink("loop", join(at.workdir, "loop"));
  await expect(everything(at.files.read(SANDBOX, "loop"))).rejects.toMatchObject({ code: "INVALID_PATH" });
  await at.files.write(SANDBOX, "file", Buffer.from("x"));
  await expect(at.files.mkdir(SANDBOX, "file/under")).rejects.toMatchObject({ code: "INVALID_PATH" });
});

test("relative paths cannot leave the workdir", async () => {
  await using at = await open();
  const outside = await mkdtemp(join(tmpdir(), "aido-outside-"));
  try {
    await writeFile(join(outside, "secret"), "secret");
    await symlink(join(outside, "secret"), join(at.workdir, "way-out"));
    await expect(everything(at.files.read(SANDBOX, "way-out"))).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
    const up = `../${outside.split("/").at(-1)}/secret`;
    await expect(everything(at.files.read(SANDBOX, up))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await at.files.write(SANDBOX, "../../escaped", Buffer.from("x"));
    expect(await readdir(at.workdir)).toContain("escaped");
  } finally {
    await rm(outside, { recursive: true, force: true });
  }
});

test("move and remove act on whole trees", async () => {
  await using at = await open();
  await at.files.write(SANDBOX, "a/b/c", Buffer.from("c"));
  await at.files.move(SANDBOX, "a", "x/y");
  await at.files.move(SANDBOX, "x/y/b/c", join(at.workdir, "top"));
  expect((await everything(at.files.read(SANDBOX, "top"))).toString()).toBe("c");
  await at.files.remove(SANDBOX, "x");
  await at.files.remove(SANDBOX, "x");
  expect(await readdir(at.workdir)).toEqual(["top"]);
});

test("a tree survives tar out and in", async () => {
  await using at = await open();
  const long = `${"l".repeat(150)}/${"m".repeat(150)}`;
  await at.files.write(SANDBOX, `from/${long}`, Buffer.alloc(700_000, "z"), { mode: 0o755 });
  await symlink("nowhere", join(at.workdir, "from/dangling"));
  await at.files.tarIn(SANDBOX, "to", at.files.tarOut(SANDBOX, "from"));
  const shape = async (path: string) =>
    (await at.files.list(SANDBOX, path, { recursive: true })).map(({ path: name, type, mode, target }) => [
      name,
      type,
      mode,
      target,
    ]);
  expect(await shape("to")).toEqual(await shape("from"));
  expect((await everything(at.files.read(SANDBOX, `to/${long}`))).equals(Buffer.alloc(700_000, "z"))).toBe(
    true,
  );
});

test("a watch tells changes from when it is ready until it is stopped", async () => {
  await using at = await open();
  const stop = new AbortController();
  const seen = new Set<string>();
  let isReady = false;
  const onReady = () => {
    isReady = true;
  };
  const watching = (async () => {
    for await (const { type, path } of at.files.watch(SANDBOX, ".", stop.signal, onReady))
      seen.add(`${type} ${path}`);
  })();
  await until("it is ready", () => isReady);
  await mkdir(join(at.workdir, "new"));
  await until("the directory is told", () => seen.has("created new"));
  await writeFile(join(at.workdir, "new/file"), "1");
  await until("the file in it is told", () => seen.has("created new/file"));
  await rm(join(at.workdir, "new/file"));
  await until("its end is told", () => seen.has("removed new/file"));
  stop.abort();
  await expect(watching).rejects.toMatchObject({ name: "AbortError" });
});
