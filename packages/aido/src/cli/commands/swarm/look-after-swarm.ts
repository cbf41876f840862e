import { AidoError } from "@aido/sdk/protocol";
import { cleanUpSwarm } from "../../../core/swarm/run/cleanup-swarm.ts";
import { reconcile } from "../../../core/swarm/run/reconcile.ts";
import { stopWorkers } from "../../../core/swarm/run/stop-workers.ts";
import { isActive } from "../../../core/swarm/state/swarm-state.ts";
import type { CliContext } from "../../context.ts";
import { parseDuration } from "../../options/duration.ts";
import { note, printResult, warn } from "../../output/print.ts";
import { printable } from "../../output/printable.ts";
import { interruptible } from "../interrupt.ts";
import { ProjectSwarm } from "./open-swarm.ts";
import { printWorkers } from "./print-workers.ts";
import { reconciledState } from "./reconciled.ts";

export interface SwarmFlags {
  dir?: string;
}

export async function swarmStatusTable(context: CliContext, flags: SwarmFlags): Promise<number> {
  return await interruptible(context, async (signal) => {
    const state = await reconciledState(context, { dir: flags.dir, signal });
    await printWorkers(context, state);
    const swarm = new ProjectSwarm(context, { dir: flags.dir, signal });
    if (!state.containers.some(isActive)) return 0;
    await using lock = await swarm.lookLock(signal);
    if (lock !== undefined)
      await note(context, "Nobody follows this swarm: `aido swarm resume` goes on with it");
    return 0;
  });
}

const GRACE_MS = 30_000;

/** Ends with 1 when a worker could not be stopped. */
export async function stopSwarm(
  context: CliContext,
  given: readonly string[],
  flags: SwarmFlags & { grace?: string },
): Promise<number> {
  const graceMs = flags.grace === undefined ? GRACE_MS : parseDuration(flags.grace, "--grace");
  return await interruptible(context, async (signal) => {
    const swarm = new ProjectSwarm(context, { dir: flags.dir, signal });
    const named = given.map((name) => swarm.nameOf(name));
    await swarm.state.read();
    context.progress.show("stopping workers");
    const stopped = await swarm.withWorkers(async (deps) => {
      await deps.state.update((state) =>
        reconcile(state, { workers: deps.workers, now: deps.clock.now(), signal }),
      );
      return await stopWorkers(deps, { named, graceMs });
    });
    context.progress.clear();
    if (stopped.length === 0) await note(context, "No worker is pending or running");
    for (const { worker, error } of stopped)
      if (error !== undefined) await warn(context, `${worker}: ${printable(error)}`);
    await printWorkers(context, await reconciledState(context, { dir: flags.dir, signal }));
    return stopped.every(({ error }) => error === undefined) ? 0 : 1;
  });
}

export async function cleanUp(context: CliContext, flags: SwarmFlags): Promise<number> {
  return await interruptible(context, async (signal) => {
    const swarm = new ProjectSwarm(context, { dir: flags.dir, signal });
    await reconciledState(context, { dir: flags.dir, signal });
    const { removed, failed } = await swarm.withWorkers((deps) => cleanUpSwarm(deps));
    await printResult(context, { removed, failed }, () =>
      removed.map((name) => `${printable(name)}\n`).join(""),
    );
    if (removed.length === 0 && failed.length === 0)
      await note(context, "No worker has ended; nothing was removed");
    const [first] = failed;
    if (first === undefined) return 0;
    throw new AidoError("CONTAINER_REMOVAL_FAILED", `Cannot remove ${first.worker}: ${first.error}`);
  });
}
