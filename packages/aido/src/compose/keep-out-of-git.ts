import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A data directory is usually in somebody's repository. What it holds (records, tokens, all that sandboxes wrote) is for this machine
 * alone and must not be published by a `git add` of everything.
 */
export function keepOutOfGit(dataDir: string): void {
  try {
    writeFileSync(join(dataDir, ".gitignore"), "*\n", { flag: "wx", mode: 0o600 });
  } catch {
    // It is there already; or nothing can be written here, which whoever has to write says.
  }
}
