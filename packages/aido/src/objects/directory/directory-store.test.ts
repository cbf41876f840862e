import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, readlink, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inChunks, objectStoreContract } from "../../../test/contract/object-store-contract.ts";
import { DirectoryStore } from "./directory-store.ts";

async function openDirectory() {
  const directory = await mkdtemp(join(tmpdir(), "aido-objects-"));
  return {
    directory,
    store: new DirectoryStore(directory),
    [Symbol.asyncDispose]: async () => await rm(directory, { recursive: true, force: true }),
  };
}

objectStoreContract("directory", openDirectory);

test("what a killed process left unfinished goes with a later put, and nothing that may still be written", async () => {
  await using opened = await openDirectory();
  const old = join(opened.directory, ".aido-unfinished-0123456789abcdef");
  const fresh = join(opened.directory, ".aido-unfinished-fedcba9876543210");
  await writeFile(old, "half");
  await writeFile(fresh, "half");
  await utimes(old, new Date(0), new Date(0));
  await opened.store.put("key", inChunks(Buffer.from("x"), 1));
  expect((await readdir(opened.directory)).sort()).toEqual([".aido-unfinished-fedcba9876543210", "key"]);
});

test("a reader that is done with each chunk at once gets all of an object, and leaves it closed when it goes", async () => {
  await using opened = await openDirectory();
  const content = randomBytes(9_000_001);
  await opened.store.put("key", inChunks(content, 100_000));
  const hash = createHash("sha256");
  for await (const chunk of await opened.store.get("key", { isTransient: true })) hash.update(chunk);
  expect(hash.digest("hex")).toBe(createHash("sha256").update(content).digest("hex"));
  for await (const _ of await opened.store.get("key", { isTransient: true })) break;
  const leaving = new AbortController();
  const reading = async () => {
    const { signal } = leaving;
    for await (const _ of await opened.store.get("key", { isTransient: true, signal })) leaving.abort();
  };
  await expect(reading()).rejects.toMatchObject({ name: "AbortError" });
  const files = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
  expect(await Promise.all(files)).not.toContain(join(opened.directory, "key"));
});

test("the directories that were made for an object go with it, and none that holds another", async () => {
  await using opened = await openDirectory();
  const put = (key: string) => opened.store.put(key, inChunks(Buffer.from("x"), 1));
  await put("a/b/one");
  await put("a/two");
  await put("three");
  await opened.store.remove("a/b/one");
  expect(await readdir(join(opened.directory, "a"))).toEqual(["two"]);
  await opened.store.remove("a/two");
  await opened.store.remove("three");
  expect(await readdir(opened.directory)).toEqual([]);
});

test("an object that is put while the last one beside it is removed is there", async () => {
  await using opened = await openDirectory();
  for (let round = 0; round < 50; round += 1) {
    await opened.store.put("box/old", inChunks(Buffer.from("x"), 1));
    const putting = opened.store.put("box/new", inChunks(Buffer.from("y"), 1));
    await Promise.all([putting, opened.store.remove("box/old")]);
    expect(await opened.store.head("box/new")).toEqual({ bytes: 1 });
    await opened.store.remove("box/new");
  }
});
