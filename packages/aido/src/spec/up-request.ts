import type { UpRequest } from "@aido/sdk";
import { collectInputs } from "./collect-inputs.ts";
import type { LoadedSpec } from "./load-spec.ts";
import { readStepTasks } from "./read-task.ts";

/** All that a sandbox of this spec needs from the project. Raises INPUT_NOT_FOUND, TASK_NOT_FOUND, INVALID_PATH. */
export async function toUpRequest(
  loaded: LoadedSpec,
  options: { autoDestroy?: boolean | undefined } = {},
): Promise<UpRequest> {
  return {
    spec: loaded.spec,
    specText: loaded.text,
    inputs: await collectInputs(loaded.projectDir, loaded.spec.inputs),
    tasks: await readStepTasks(loaded.projectDir, loaded.spec),
    autoDestroy: options.autoDestroy,
  };
}
