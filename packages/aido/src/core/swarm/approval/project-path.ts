import { realpath, stat } from "node:fs/promises";
import { join } from "node:path";

/** Whether the path is a directory of the project itself, wherever links lead. */
export async function isInsideProject(project: string, path: string): Promise<boolean> {
  try {
    const [root, target] = await Promise.all([realpath(project), realpath(join(project, path))]);
    return (target === root || target.startsWith(`${root}/`)) && (await stat(target)).isDirectory();
  } catch {
    return false;
  }
}
