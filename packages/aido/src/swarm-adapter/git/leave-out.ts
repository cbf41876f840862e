import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkerGit } from "./worker-git.ts";

const LIMIT_MS = 10 * 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * What an image brought and no branch has, such as dependencies and a project's settings that are not committed, is nobody's
 * work: it stays where it is, and is in no commit. Directories of nothing else are left out as a whole.
 */
export async function leaveOut(git: WorkerGit, signal: AbortSignal): Promise<void> {
  const args = ["ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory"];
  const { stdout } = await git.run(args, { signal, limitMs: LIMIT_MS, maxBytes: MAX_BYTES });
  const paths = stdout.toString("latin1").split("\0");
  const patterns = paths.filter((path) => path !== "").map((path) => `${toPattern(path)}\n`);
  await appendFile(join(git.directory, "info/exclude"), patterns.join(""), "latin1");
}

/** Names of any bytes; what a line cannot hold matches any letter. */
function toPattern(path: string): string {
  const escaped = path.replace(/[\\*?[]/g, "\\$&").replace(/[\r\n]/g, "?");
  return `/${escaped.replace(/ +$/, (spaces) => "\\ ".repeat(spaces.length))}`;
}
