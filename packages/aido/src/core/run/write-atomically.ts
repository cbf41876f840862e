import { randomBytes } from "node:crypto";
import { closeSync, fchmodSync, fdatasync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";

const datasync = promisify(fdatasync);

export interface WriteOptions {
  /** Whatever the process lets others read by default. */
  mode?: number | undefined;
  /** Also safe against a loss of power, for what nobody could find out again. */
  durable?: boolean | undefined;
}

/**
 * Replaces a file of aido's own in one step: a reader sees the old content or the new, whoever is killed when. The
 * files are small, so all but the wait for the disk is done at once: that takes less than a thread's round trip.
 */
export async function writeAtomically(
  path: string,
  content: string,
  options: WriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = openSync(temporary, "wx", options.mode ?? 0o644);
    try {
      if (options.mode !== undefined) fchmodSync(file, options.mode);
      writeFileSync(file, content);
      if (options.durable === true) await datasync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
}

export async function writeJson(path: string, value: unknown, options: WriteOptions = {}): Promise<void> {
  await writeAtomically(path, `${JSON.stringify(value, undefined, 2)}\n`, options);
}
