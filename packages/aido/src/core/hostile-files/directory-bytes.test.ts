import { link, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { directoryBytes } from "./directory-bytes.ts";

const KIB = 1024;

async function tree() {
  const root = await mkdtemp(join(tmpdir(), "aido-bytes-"));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

test("files count once whatever names they have, holes count nothing, and links lead nowhere", async () => {
  await using outside = await tree();
  await writeFile(join(outside.root, "huge"), Buffer.alloc(900 * KIB, 1));
  await using inside = await tree();
  await mkdir(join(inside.root, "a/b"), { recursive: true });
  await writeFile(join(inside.root, "a/b/file"), Buffer.alloc(200 * KIB, 1));
  await link(join(inside.root, "a/b/file"), join(inside.root, "second"));
  await writeFile(join(inside.root, "holes"), "");
  await truncate(join(inside.root, "holes"), 1024 ** 4);
  await symlink(outside.root, join(inside.root, "link"));
  const { bytes, isWhole } = await directoryBytes(inside.root);
  expect(isWhole).toBe(true);
  expect(bytes).toBeGreaterThanOrEqual(200 * KIB);
  expect(bytes).toBeLessThan(300 * KIB);
});

test("what lies deeper than descriptors reach is said to be missing", async () => {
  await using inside = await tree();
  await mkdir(join(inside.root, "d/".repeat(200)), { recursive: true });
  expect(await directoryBytes(inside.root)).toMatchObject({ isWhole: false });
});

test("a file is measured itself, and a walk ends with its signal", async () => {
  await using inside = await tree();
  const file = join(inside.root, "file");
  await writeFile(file, Buffer.alloc(64 * KIB, 1));
  expect((await directoryBytes(file)).bytes).toBeGreaterThanOrEqual(64 * KIB);
  const over = AbortSignal.abort(new Error("enough"));
  await expect(directoryBytes(inside.root, over)).rejects.toThrow("enough");
});
