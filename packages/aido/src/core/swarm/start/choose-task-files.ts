import { relative, resolve } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { taskFilePathProblem } from "../messages/payload-rules.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { discoverTaskFiles, readTaskFile, TASKS_DIRECTORY } from "../tasks/task-files.ts";

export interface TaskChoice {
  readonly project: string;
  /** What relative paths are relative to. */
  readonly cwd: string;
  readonly named: readonly string[];
  readonly all: boolean;
  /** Told about what is called like a task file and is a link or no file. */
  readonly onLeftOut?: ((path: string) => void) | undefined;
  /** Asked which ones, when nobody said and there are several; undefined when there is nobody to ask. */
  readonly ask?: ((files: readonly TaskFile[]) => Promise<readonly TaskFile[]>) | undefined;
}

/** The task files that a swarm is to work on, read and checked. One that is wrong is an error before anything begins. */
export async function chooseTaskFiles(choice: TaskChoice): Promise<readonly TaskFile[]> {
  const { project, named, all } = choice;
  if (named.length > 0 && all) {
    throw new AidoError("VALIDATION_ERROR", "--all and task files by name do not go together", {
      hint: "Leave one of them away.",
    });
  }
  if (named.length > 0) {
    const paths = [...new Set(named.map((path) => pathInProject(choice, path)))];
    return await readAll(project, paths);
  }
  const paths = await discoverTaskFiles(project, choice.onLeftOut);
  if (paths.length === 0) {
    throw new AidoError("TASK_FILE_NOT_FOUND", `No task files in ${project}/${TASKS_DIRECTORY}`, {
      hint: `Write one, ${TASKS_DIRECTORY}/YYYY-MM-DD-<feature>-tasks.json, or name the project with --dir.`,
    });
  }
  if (paths.length > 1 && !all && choice.ask === undefined) {
    throw new AidoError("VALIDATION_ERROR", `There are ${paths.length} task files: ${shortList(paths)}`, {
      hint: "Type `aido swarm --all`, or name some: `aido swarm --files a-tasks.json,b-tasks.json`.",
      details: { files: paths },
    });
  }
  const files = await readAll(project, paths);
  return files.length > 1 && !all && choice.ask !== undefined ? await choice.ask(files) : files;
}

async function readAll(project: string, paths: readonly string[]): Promise<TaskFile[]> {
  const files: TaskFile[] = [];
  for (const path of paths) files.push(await readTaskFile(project, path));
  return files;
}

/** Workers get the path as it is in the repository, so it has to be one of those. */
function pathInProject({ project, cwd }: TaskChoice, given: string): string {
  const path = given.includes("/") ? relative(project, resolve(cwd, given)) : `${TASKS_DIRECTORY}/${given}`;
  const problem = taskFilePathProblem(path);
  if (problem === undefined) return path;
  throw new AidoError(
    "VALIDATION_ERROR",
    `${JSON.stringify(given)} is not a task file of ${project}: it ${problem}`,
    {
      hint: `Task files are ${TASKS_DIRECTORY}/*-tasks.json.`,
      details: { file: given },
    },
  );
}

function shortList(paths: readonly string[]): string {
  const shown = paths.slice(0, 10).join(", ");
  return paths.length > 10 ? `${shown} and ${paths.length - 10} more` : shown;
}
