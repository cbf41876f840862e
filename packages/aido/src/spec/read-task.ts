import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import type { RunFile } from "@aido/sdk";
import { AidoError, type RunSpec } from "@aido/sdk/protocol";
import { toRunFile } from "./collect-inputs.ts";

/** The task file a user named. Raises TASK_NOT_FOUND or TASK_NOT_READABLE before anything is started. */
export async function readTask(path: string): Promise<RunFile> {
  return await toRunFile(basename(path), await checkTask(path, path));
}

/** The task files of a pipeline, each once. They lie in the project. */
export async function readStepTasks(projectDir: string, spec: RunSpec): Promise<readonly RunFile[]> {
  const root = await realpath(projectDir);
  const tasks = [...new Set(spec.steps.map((step) => step.task))];
  return await Promise.all(
    tasks.map(async (task) => {
      const real = await checkTask(join(root, task), task);
      if (real.startsWith(root + sep)) return await toRunFile(task, real);
      throw new AidoError("INVALID_PATH", `The task ${task} lies outside the project`, {
        hint: "The tasks of steps are files of the directory that holds the spec.",
        details: { task },
      });
    }),
  );
}

async function checkTask(path: string, shown: string): Promise<string> {
  try {
    const real = await realpath(path);
    if (!(await stat(real)).isFile()) {
      throw new AidoError("TASK_NOT_READABLE", `The task ${shown} is not a file`, {
        hint: "Name a script, for example `aido run task.py`.",
        details: { task: shown },
      });
    }
    // Opening it is what counts: permissions are not all that can stand in the way.
    await (await open(real, constants.O_RDONLY | constants.O_NOFOLLOW)).close();
    return real;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new AidoError("TASK_NOT_FOUND", `There is no task file ${shown}`, {
        hint: "Check the path; nothing was started.",
        details: { task: shown },
        cause: thrown,
      });
    }
    if (code === "EACCES" || code === "EPERM") {
      throw new AidoError("TASK_NOT_READABLE", `The task file ${shown} may not be read`, {
        hint: "Check its permissions; nothing was started.",
        details: { task: shown },
        cause: thrown,
      });
    }
    throw thrown;
  }
}
