import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { addContainer, startSwarm } from "../../packages/aido/dist/core/swarm/state/change-state.js";
import { SwarmStateFile } from "../../packages/aido/dist/core/swarm/state/swarm-state-file.js";
import { temporaryDirectory } from "../product.mjs";
import { round, timed } from "../statistics.mjs";

const PROCESSES = 4;
const UPDATES = 1000;
const EACH = UPDATES / PROCESSES;
const UPDATER = new URL("../swarm-updater.mjs", import.meta.url).pathname;
const SCRIPT = new URL("../swarm-updater.sh", import.meta.url).pathname;

/** 1,000 updates of one swarm's state by four processes at once, against a shell script that does each with flock, jq and mv. */
export async function swarmState() {
  if (spawnSync("jq", ["--version"]).status !== 0) throw new Error("jq is missing: apt-get install jq");
  const directory = temporaryDirectory();
  try {
    const ours = await updates(join(directory.path, "ours"), process.execPath, UPDATER);
    const theirs = await updates(join(directory.path, "theirs"), "bash", SCRIPT);
    const ratio = theirs / ours;
    return {
      value: round(ours / UPDATES, 2),
      unit: "ms per update",
      baseline: round(theirs / UPDATES, 2),
      ratio: round(ratio, 1),
      processes: PROCESSES,
      updates: UPDATES,
      want: ">= 5 times faster than flock, jq and mv, none lost",
      ok: ratio >= 5,
    };
  } finally {
    directory.remove();
  }
}

async function updates(project, command, updater) {
  const names = Array.from({ length: PROCESSES }, (_, index) => `aimi-swarm-worker-${index}`);
  mkdirSync(project);
  const file = new SwarmStateFile({ project });
  await file.replace(() => swarmOf(names));
  const ms = await timed(() =>
    Promise.all(names.map((name) => run(command, [updater, project, name, String(EACH)]))),
  );
  // Read by all rules: a lost update, or a file that is not whole, is no result.
  for (const { containerName, storyProgress } of (await file.read()).containers) {
    if (storyProgress.completed !== EACH) {
      throw new Error(`${containerName} has ${storyProgress.completed} of ${EACH} updates by ${updater}`);
    }
  }
  return ms;
}

function swarmOf(names) {
  const now = new Date();
  return names.reduce(
    (state, containerName, index) =>
      addContainer(
        state,
        {
          containerId: index.toString(16).padStart(12, "0"),
          containerName,
          taskFilePath: `.aimi/tasks/2026-01-05-${containerName}-tasks.json`,
          branchName: `feat/${containerName}`,
        },
        now,
      ),
    startSwarm(undefined, { swarmId: randomUUID(), now, force: false }),
  );
}

async function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`);
}
