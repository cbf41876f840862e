import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

export interface WriteOptions {
  mode?: number | undefined;
  /** Also safe against a loss of power, for what nobody could find out again. */
  durable?: boolean | undefined;
}

/** Replaces a file of aido's own in one step: a reader sees the old content or the new, whoever is killed when. */
export async function writeAtomically(
  path: string,
  content: string,
  options: WriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", options.mode ?? 0o644);
    try {
      await file.writeFile(content);
      if (options.durable === true) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

export async function writeJson(path: string, value: unknown, options: WriteOptions = {}): Promise<void> {
  await writeAtomically(path, `${JSON.stringify(value, undefined, 2)}\n`, options);
}
