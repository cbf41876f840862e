// Updates one worker's entry of a swarm's state again and again: swarm-updater.mjs <project> <worker> <count>
import { updateContainer } from "../packages/aido/dist/core/swarm/state/change-state.js";
import { SwarmStateFile } from "../packages/aido/dist/core/swarm/state/swarm-state-file.js";

const [, , project, name, count] = process.argv;
const total = Number(count);
const file = new SwarmStateFile({ project });
for (let completed = 1; completed <= total; completed++) {
  const storyProgress = { total, completed, failed: 0, inProgress: 0, pending: total - completed };
  await file.update((state) => updateContainer(state, name, { storyProgress }, new Date()));
}
