import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, opendir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { editTaskFile } from "./edit-task-file.ts";
import { parseTaskFile } from "./parse-task-file.ts";
import type { StoryChange, TaskFile } from "./task-file.ts";
import { taskFileError } from "./task-file-error.ts";

export const TASKS_DIRECTORY = ".aimi/tasks";
export const MAX_TASK_FILE_BYTES = 1024 * 1024;
const MAX_TASK_FILES = 1000;
const MAX_ENTRIES = 10_000;

/**
 * Paths of the project's task files, relative to it, in the order of their names. What is called like one and is a link, a directory
 * or anything else is not among them and is told, so that nobody takes it for done.
 */
export async function discoverTaskFiles(
  project: string,
  onLeftOut: (path: string) => void = () => undefined,
): Promise<readonly string[]> {
  for (const directory of [".aimi", TASKS_DIRECTORY]) {
    const stats = await lstat(join(project, directory)).catch(absent);
    if (stats === undefined) return [];
    if (!stats.isDirectory()) {
      throw new AidoError("TASK_FILE_INVALID", `${directory} is not a directory`, {
        hint: "Links are not followed: put the task files into the project itself.",
        details: { file: directory },
      });
    }
  }
  const found: string[] = [];
  let seen = 0;
  for await (const entry of await opendir(join(project, TASKS_DIRECTORY))) {
    seen += 1;
    const path = `${TASKS_DIRECTORY}/${entry.name}`;
    if (/.-tasks\.json$/.test(entry.name)) {
      if (entry.isFile()) found.push(path);
      else onLeftOut(path);
    }
    if (found.length > MAX_TASK_FILES || seen > MAX_ENTRIES) {
      throw new AidoError("TASK_FILE_INVALID", `${TASKS_DIRECTORY} has too many files`, {
        hint: `Keep at most ${MAX_TASK_FILES} task files there; move finished ones away.`,
        details: { file: TASKS_DIRECTORY },
      });
    }
  }
  return found.sort();
}

/** Reads and checks one file; `path` is relative to the project or absolute. */
export async function readTaskFile(project: string, path: string): Promise<TaskFile> {
  return parseTaskFile(path, await readText(resolvePath(project, path), path));
}

/**
 * Writes the changes into the file, all or nothing, and gives the file as it is then. A file that another changed since
 * it was read is refused rather than overwritten; sessions that share one take the swarm's lock around both.
 */
export async function writeStories(
  project: string,
  file: TaskFile,
  changes: readonly StoryChange[],
): Promise<TaskFile> {
  const target = resolvePath(project, file.path);
  const changed = parseTaskFile(file.path, editTaskFile(file.text, changes));
  if ((await readText(target, file.path)) !== file.text) {
    throw new AidoError("STORY_STATUS_CONFLICT", `${file.path} was changed by another`, {
      hint: "Read it again and repeat the change.",
      details: { file: file.path },
    });
  }
  const { mode } = await lstat(target);
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const handle = await open(temporary, "wx", 0o600);
    await closing(handle, async () => {
      await handle.chmod(mode & 0o777);
      await handle.writeFile(changed.text);
      await handle.sync();
    });
    await rename(temporary, target);
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
  const directory = await open(dirname(target), constants.O_RDONLY | constants.O_DIRECTORY);
  await closing(directory, () => directory.sync());
  return changed;
}

async function readText(target: string, path: string): Promise<string> {
  // Not blocking: opening a pipe that somebody put there must not wait for a writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(target, flags).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === "ELOOP")
      throw unusable(path, "is a link", "Links are not followed: name the file itself.");
    throw new AidoError("TASK_FILE_NOT_FOUND", `Cannot read the task file ${path}`, {
      hint: `Task files are ${TASKS_DIRECTORY}/*-tasks.json.`,
      details: { file: path },
      cause: thrown,
    });
  });
  return closing(handle, async () => {
    const stats = await handle.stat();
    if (!stats.isFile()) throw unusable(path, "is not a file", "Name a file.");
    // One byte more than allowed shows that there is more, also of a file that grows meanwhile.
    const buffer = Buffer.alloc(Math.min(stats.size, MAX_TASK_FILE_BYTES) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      ({ bytesRead: read } = await handle.read(buffer, length, buffer.length - length, length));
    }
    if (length > MAX_TASK_FILE_BYTES) {
      throw unusable(path, `has more than ${MAX_TASK_FILE_BYTES} bytes`, "Split it into several files.");
    }
    try {
      // A byte-order mark is no JSON; it is left in the text, where the parser names it.
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(buffer.subarray(0, length));
    } catch {
      throw unusable(path, "is not UTF-8 text", "Save it as UTF-8.");
    }
  });
}

async function closing<Result>(handle: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await handle.close();
  }
}

function unusable(path: string, problem: string, fix: string): AidoError {
  return taskFileError(path, [{ field: "(file)", line: 1, problem, fix }]);
}

function resolvePath(project: string, path: string): string {
  return path.startsWith("/") ? path : join(project, path);
}

function absent(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT") return undefined;
  throw thrown;
}
