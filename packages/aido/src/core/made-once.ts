import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";

/** What this file holds, made when there is none, for its owner alone. Of two processes that make it at once, one wins. */
export async function madeOnce(file: string, make: () => Uint8Array | string): Promise<Buffer> {
  const known = await read(file);
  if (known !== undefined) return known;
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(make());
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file).catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== "EEXIST") throw thrown;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file);
}

async function read(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}
