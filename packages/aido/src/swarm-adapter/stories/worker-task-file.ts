import { lstat, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { StoryChange, TaskFile } from "../../core/swarm/tasks/task-file.ts";
import { readTaskFile, writeStories } from "../../core/swarm/tasks/task-files.ts";

/** The task file in the workspace. The adapter alone says how its stories stand. */
export class WorkerTaskFile {
  file: TaskFile;
  readonly #workspace: string;

  private constructor(workspace: string, file: TaskFile) {
    this.#workspace = workspace;
    this.file = file;
  }

  /** Raises TASK_FILE_NOT_FOUND and TASK_FILE_INVALID; a link on the way to it leads somewhere else and is refused. */
  static async open(workspace: string, path: string): Promise<WorkerTaskFile> {
    for (const directory of directoriesOf(path)) {
      const stats = await lstat(join(workspace, directory)).catch(absent);
      if (stats === undefined) throw notFound(path);
      if (!stats.isDirectory()) {
        throw new AidoError("TASK_FILE_INVALID", `Invalid tasks.json - ${directory} is not a directory`, {
          hint: "Links are not followed: put the task file into the repository itself.",
          details: { file: path },
        });
      }
    }
    return new WorkerTaskFile(workspace, await readTaskFile(workspace, path));
  }

  async change(changes: readonly StoryChange[]): Promise<void> {
    if (changes.length === 0) return;
    await this.#restore();
    this.file = await writeStories(this.#workspace, this.file, changes);
  }

  /** What the agent made of it, were it only a new status, is put back. */
  async #restore(): Promise<void> {
    const { path, text } = this.file;
    for (const directory of directoriesOf(path)) {
      const place = join(this.#workspace, directory);
      const stats = await lstat(place).catch(absent);
      if (stats !== undefined && !stats.isDirectory()) await rm(place);
      if (!stats?.isDirectory()) await mkdir(place);
    }
    const found = await readTaskFile(this.#workspace, path).catch(() => undefined);
    if (found?.text === text) return;
    const target = join(this.#workspace, path);
    await rm(target, { recursive: true, force: true });
    await writeFile(target, text, { flag: "wx" });
  }
}

/** `.aimi`, `.aimi/tasks`, …: from the outermost. */
function directoriesOf(path: string): readonly string[] {
  const parts = dirname(path).split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function notFound(path: string): AidoError {
  return new AidoError("TASK_FILE_NOT_FOUND", `The repository has no task file ${path}`, {
    details: { file: path },
  });
}

function absent(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT" || thrown.code === "ENOTDIR") return undefined;
  throw thrown;
}
