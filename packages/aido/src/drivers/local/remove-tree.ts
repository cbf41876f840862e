import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";

const LIMIT_MS = 120_000;

/** Removes a tree that a sandbox may have made hard to remove: deeper than a path can name, or closed to its owner. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    // Both walk by descriptors and follow no links. chmod's complaints do not matter if rm succeeds.
    const run = (program: string, options: readonly string[]) =>
      promisify(execFile)(program, [...options, "--", path], { cwd: "/", timeout: LIMIT_MS });
    await run("/bin/chmod", ["-R", "u+rwX"]).catch(() => undefined);
    await run("/bin/rm", ["-rf"]);
  }
}
