import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { RunOptions, Runs } from "@aido/sdk";
import { isAidoError, type RunRecord } from "@aido/sdk/protocol";
import { implicitSpec } from "./implicit-spec.ts";
import { loadSpec, SPEC_FILE } from "./load-spec.ts";
import { readTask } from "./read-task.ts";
import { toUpRequest } from "./up-request.ts";

export interface StartTask {
  /** A path on this machine; absent runs the steps of the sandbox's spec. */
  task?: string | undefined;
  sandbox?: string | undefined;
  projectDir: string;
  autoDestroy?: boolean | undefined;
  hostNetwork?: boolean | undefined;
  privileged?: boolean | undefined;
}

/**
 * `aido run`: in the named sandbox; else in the newest that `sandbox up` made; else in a new one of the
 * project's spec file; else in a new one that fits the task's extension.
 */
export async function startTask(
  runs: Runs,
  request: StartTask,
  options: RunOptions = {},
): Promise<RunRecord> {
  const { task: path, projectDir, ...rest } = request;
  const task = path === undefined ? undefined : await readTask(path);
  if (request.sandbox !== undefined) return await runs.start({ ...rest, task }, options);
  try {
    return await runs.start({ ...rest, task }, options);
  } catch (thrown) {
    if (!isAidoError(thrown, "CONTAINER_NOT_FOUND")) throw thrown;
  }
  const specPath = join(projectDir, SPEC_FILE);
  const { autoDestroy, hostNetwork, privileged } = request;
  if (path === undefined || (await exists(specPath))) {
    const up = await runs.up(await toUpRequest(await loadSpec(specPath), { autoDestroy }), options);
    return await runs.start({ ...rest, task, sandbox: up.id }, options);
  }
  const { spec, text } = implicitSpec(path);
  const start = { task, hostNetwork, privileged };
  return await runs.up({ spec, specText: text, inputs: [], autoDestroy, implicit: true, start }, options);
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    (thrown: NodeJS.ErrnoException) => {
      if (thrown.code === "ENOENT") return false;
      throw thrown;
    },
  );
}
