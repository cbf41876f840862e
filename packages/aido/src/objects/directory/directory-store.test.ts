import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
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
