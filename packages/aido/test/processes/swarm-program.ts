import { updateContainer } from "../../src/core/swarm/state/change-state.ts";
import { SwarmStateFile } from "../../src/core/swarm/state/swarm-state-file.ts";

// Changes a swarm's state until it is killed: `hold` stays in the middle of one change, `count` makes one after the other.
const [project = "", what] = process.argv.slice(2);
const file = new SwarmStateFile({ project });

if (what === "hold") {
  await file.update((state) => {
    console.log("holding");
    return new Promise(() => {
      setInterval(() => state, 1000);
    });
  });
}
for (;;) {
  const { containers } = await file.update((state) => {
    const [first] = state.containers;
    if (first === undefined) throw new Error("There is no container");
    const storyProgress = { ...first.storyProgress, total: first.storyProgress.total + 1 };
    return updateContainer(state, first.containerName, { storyProgress }, new Date());
  });
  console.log(containers[0]?.storyProgress.total);
}
