import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

/** Replaces a file of aido's own in one step; a reader sees the old content or the new, also after a crash. */
export async function writeAtomically(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o644);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeAtomically(path, `${JSON.stringify(value, undefined, 2)}\n`);
}
