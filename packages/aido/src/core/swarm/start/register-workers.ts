import { countStories } from "../records/worker-record.ts";
import { addContainer, updateContainer } from "../state/change-state.ts";
import { NO_CONTAINER, type SwarmState } from "../state/swarm-state.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { workerName } from "../workers/worker-name.ts";

/** An entry as pending for each task file; those that had one before get a new one in its place. */
export function registerWorkers(state: SwarmState, files: readonly TaskFile[], now: Date): SwarmState {
  let after = state;
  for (const file of files) {
    const containerName = workerName(file.path);
    const containers = after.containers.filter((entry) => entry.containerName !== containerName);
    const { path: taskFilePath } = file;
    const { branchName } = file.metadata;
    const added = { containerId: NO_CONTAINER, containerName, taskFilePath, branchName };
    after = addContainer({ ...after, containers }, added, now);
    const storyProgress = countStories(file.stories.map(({ status }) => status));
    after = updateContainer(after, containerName, { storyProgress }, now);
  }
  return after;
}
