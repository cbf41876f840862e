import { AidoError } from "@aido/sdk/protocol";
import { SystemClock } from "../../../core/system-clock.ts";
import type { CliContext } from "../../context.ts";
import { note, printResult } from "../../output/print.ts";
import type { ProjectSwarm } from "./open-swarm.ts";
import type { SwarmChoices } from "./swarm-options.ts";

const START_LIMIT_MS = 30_000;
const LOOK_MS = 100;
const LOG = ".aimi/swarm/driver.log";

/** Leaves the swarm to a process of its own, which goes on when this terminal is closed. */
export async function detach(
  context: CliContext,
  swarm: ProjectSwarm,
  choices: SwarmChoices,
): Promise<number> {
  const { maxTurns, maxTokens, maxSeconds } = choices.budgets;
  const flag = (name: string, value: number | undefined, unit = "") =>
    value === undefined ? [] : [name, `${value}${unit}`];
  const argv = [
    ...["--json", "swarm", "resume", "--dir", swarm.project, "--no-build"],
    ...flag("--max", choices.maxWorkers),
    ...flag("--swarm-max-turns", maxTurns),
    ...flag("--swarm-max-tokens", maxTokens),
    ...flag("--swarm-max-time", maxSeconds, "s"),
  ];
  const child = await swarm.directory.within(async (path) =>
    context.startInBackground(argv, path("driver.log")),
  );
  const clock = new SystemClock();
  const end = clock.now().getTime() + START_LIMIT_MS;
  // It has the swarm when it has its lock.
  while (clock.now().getTime() < end && child.isRunning()) {
    const driver = (await swarm.directory.readJson("driver.json")) as { pid?: unknown } | undefined;
    if (driver?.pid === child.pid) {
      const { swarmId } = await swarm.state.read();
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
