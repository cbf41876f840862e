import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * A directory for this user alone, and those above it that are missing. Node's own way tries for ever where none can be
 * made in one that is there, as below /proc.
 */
export function makeDirectories(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path).isDirectory()) return;
    const above = dirname(path);
    if (code !== "ENOENT" || existsSync(above)) throw thrown;
    makeDirectories(above);
    makeDirectories(path);
  }
}
