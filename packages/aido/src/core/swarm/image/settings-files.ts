import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import type { ContextFile } from "../../driver/driver-images.ts";
import { StateDirectory } from "../state/state-directory.ts";

const MOST_FILES = 1000;
const MOST_FILE_BYTES = 1024 * 1024;
const MOST_DEPTH = 8;
/** What swarms, and tools that do one task file, write while they run. With it an image would never be up to date, and no worker needs it. */
const OF_A_RUN = /^(\.|swarm$|swarm-state\.json|current-(tasks|branch|story)$|last-result$)|\.tmp$/;

/**
 * The project's `.aimi` as it is on disk, for it is often not committed. No link is followed; links and whatever else is no
 * plain file are left out, and told.
 */
export async function readSettingsFiles(
  project: string,
): Promise<{ files: readonly ContextFile[]; leftOut: readonly string[] } | undefined> {
  await using directory = await StateDirectory.open(project);
  if (directory === undefined) return undefined;
  const files: ContextFile[] = [];
  const leftOut: string[] = [];
  const visit = async (real: string, shown: string, depth: number): Promise<void> => {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    const handle = await open(real, O_RDONLY | O_DIRECTORY | (depth > 0 ? O_NOFOLLOW : 0));
    try {
      const here = `/proc/self/fd/${handle.fd}`;
      const entries = await readdir(here, { withFileTypes: true });
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const path = `${shown}/${entry.name}`;
        if (depth === 0 && OF_A_RUN.test(entry.name)) continue;
        if (entry.isDirectory() && depth < MOST_DEPTH) await visit(`${here}/${entry.name}`, path, depth + 1);
        else {
          const file = entry.isFile() ? await readPlain(`${here}/${entry.name}`) : undefined;
          if (file === undefined || files.length >= MOST_FILES) leftOut.push(path);
          else files.push({ path, ...file });
        }
      }
    } finally {
      await handle.close();
    }
  };
  await visit(directory.path("."), ".aimi", 0);
  return { files, leftOut };
}

/** Undefined for what is no plain file of a reasonable size. */
async function readPlain(path: string): Promise<{ content: Buffer; executable: boolean } | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > MOST_FILE_BYTES) return undefined;
    return { content: await handle.readFile(), executable: (stats.mode & 0o100) !== 0 };
  } finally {
    await handle.close();
  }
}
