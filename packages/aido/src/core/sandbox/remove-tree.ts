import { chmod, mkdir, readdir, rename, rm, rmdir, unlink } from "node:fs/promises";

/**
 * Removes a directory that a sandbox has filled. No link is followed. Trees deeper than the longest path the
 * system takes and directories without permissions are removed too: each directory is first moved up beside the
 * others, so that no path grows.
 */
export async function removeTree(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? "";
    if (!["ENAMETOOLONG", "EACCES", "EPERM", "ENOTEMPTY"].includes(code)) throw thrown;
    await flatten(directory);
  }
}

async function flatten(directory: string): Promise<void> {
  const heap = `${directory}.removing`;
  await mkdir(heap, { recursive: true, mode: 0o700 });
  let count = Date.now();
  const place = () => `${heap}/${count++}`;
  const waiting = (await readdir(heap)).map((name) => `${heap}/${name}`);
  const first = place();
  await rename(directory, first);
  waiting.push(first);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    await chmod(next, 0o700);
    // Names are bytes: one that is not UTF-8 must come back exactly.
    for (const entry of await readdir(next, { withFileTypes: true, encoding: "buffer" })) {
      const path = Buffer.concat([Buffer.from(`${next}/`), entry.name]);
      if (!entry.isDirectory()) {
        await unlink(path);
        continue;
      }
      await chmod(path, 0o700);
      const moved = place();
      await rename(path, moved);
      waiting.push(moved);
    }
    await rmdir(next);
  }
  await rmdir(heap);
}
