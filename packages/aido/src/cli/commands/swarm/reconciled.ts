import { isAidoError } from "@aido/sdk/protocol";
import { catchUp } from "../../../core/swarm/follow/catch-up.ts";
import { reconcile } from "../../../core/swarm/run/reconcile.ts";
import { isActive, NO_CONTAINER, type SwarmState } from "../../../core/swarm/state/swarm-state.ts";
import type { SwarmDeps } from "../../../core/swarm/swarm-deps.ts";
import type { CliContext } from "../../context.ts";
import { warn } from "../../output/print.ts";
import { ProjectSwarm } from "./open-swarm.ts";
import { readChoices } from "./swarm-options.ts";

const CATCH_UP_MS = 2000;

/** The state to show: compared with the engine where that can change anything, and said to be old where it does not answer. */
export async function reconciledState(
  context: CliContext,
  { dir, signal }: { dir: string | undefined; signal: AbortSignal },
): Promise<SwarmState> {
  const swarm = new ProjectSwarm(context, { dir, signal });
  const known = await swarm.state.read();
  if (!known.containers.some((entry) => isActive(entry) && entry.containerId !== NO_CONTAINER)) return known;
  try {
    return await swarm.withWorkers((deps) => makeTrue(context, swarm, deps, signal));
  } catch (thrown) {
    if (!isAidoError(thrown, "RUNTIME_UNAVAILABLE") && !isAidoError(thrown, "UNSUPPORTED")) throw thrown;
    await warn(context, `${thrown.message}; this is what was known last`);
    return known;
  }
}

async function makeTrue(
  context: CliContext,
  swarm: ProjectSwarm,
  deps: SwarmDeps,
  signal: AbortSignal,
): Promise<SwarmState> {
  const compare = () =>
    deps.state.update((state) => reconcile(state, { workers: deps.workers, now: deps.clock.now(), signal }));
  const before = (await swarm.state.read()).containers.filter(({ status }) => status === "running");
  const after = await compare();
  // Where another process follows the workers, it keeps the state.
  const lock = before.length === 0 ? undefined : await swarm.lookLock(signal);
  if (lock === undefined) return after;
  try {
    const plan = readChoices(context, {}).planFor(undefined);
    await Promise.all(
      after.containers
        // A paused one answers nothing.
        .filter(
          ({ containerName, status }) =>
            status !== "stopped" && before.some((entry) => entry.containerName === containerName),
        )
        .map(async (entry) => {
          const file = await swarm.readTask(entry.taskFilePath);
          const { exists } = await deps.workers.status(entry.containerName, signal);
          if (exists)
            await catchUp(deps, { swarmId: after.swarmId, entry, plan, file, limitMs: CATCH_UP_MS, signal });
        }),
    );
    return await compare();
  } finally {
    await lock[Symbol.asyncDispose]();
  }
}
