import { AidoError } from "@aido/sdk/protocol";
import type { TaskFile } from "../../../core/swarm/tasks/task-file.ts";
import { workerName } from "../../../core/swarm/workers/worker-name.ts";
import { SystemClock } from "../../../core/system-clock.ts";
import type { CliContext, GlobalOptions } from "../../context.ts";
import { note, printResult } from "../../output/print.ts";
import type { ProjectSwarm } from "./open-swarm.ts";
import type { SwarmChoices } from "./swarm-options.ts";
import { readSwarmRecord, writeSwarmRecord } from "./swarm-record.ts";

const START_LIMIT_MS = 30_000;
const LOOK_MS = 100;
const LOG = ".aimi/swarm/driver.log";

/** Leaves the swarm to a process of its own, which goes on when this terminal is closed. */
export async function detach(
  context: CliContext,
  swarm: ProjectSwarm,
  { choices, files }: { choices: SwarmChoices; files: readonly TaskFile[] },
): Promise<number> {
  const { swarmId } = await swarm.state.read();
  const before = await readSwarmRecord(swarm, swarmId);
  const record = { shape: choices.shapeFor(before?.shape), seconds: before?.seconds ?? 0 };
  await writeSwarmRecord(swarm, swarmId, record);
  // By name: what failed before and was not asked for now stays as it is.
  const names = files.map(({ path }) => workerName(path));
  const argv = [
    "--json",
    ...passedOn(context.globals),
    "swarm",
    "resume",
    "--dir",
    swarm.project,
    "--no-build",
  ];
  const child = await swarm.directory.within(async (path) =>
    context.startInBackground([...argv, ...names], path("driver.log")),
  );
  const clock = new SystemClock();
  const end = clock.now().getTime() + START_LIMIT_MS;
  // It has the swarm when it has its lock.
  while (clock.now().getTime() < end && child.isRunning()) {
    const driver = (await swarm.directory.readJson("driver.json")) as { pid?: unknown } | undefined;
    if (driver?.pid === child.pid) {
      await printResult(context, { swarmId, pid: child.pid, log: LOG }, () => `${swarmId}\n`);
      await note(
        context,
        `Process ${child.pid} runs the swarm; its log is ${LOG}. See \`aido swarm status\`.`,
      );
      return 0;
    }
    await clock.sleep(LOOK_MS);
  }
  throw new AidoError("RUNTIME_UNAVAILABLE", "The swarm could not be left to a process of its own", {
    hint: `${LOG} says why. The swarm is written down: \`aido swarm resume\` goes on with it.`,
  });
}

/** What says where things are; a swarm runs on this machine alone. */
function passedOn({ dataDir, config, driver }: GlobalOptions): readonly string[] {
  const given = { "--data-dir": dataDir, "--config": config, "--driver": driver };
  return Object.entries(given).flatMap(([option, value]) => (value === undefined ? [] : [option, value]));
}
