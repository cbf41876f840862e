import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { newRecord, type WorkerPlan } from "../records/worker-record.ts";
import { cleanUpSwarm } from "../run/cleanup-swarm.ts";
import { reconcile } from "../run/reconcile.ts";
import type { SwarmDeps } from "../run/swarm-deps.ts";
import { startSwarm } from "../state/change-state.ts";
import { isActive, type SwarmState } from "../state/swarm-state.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { workerName } from "../workers/worker-name.ts";
import { registerWorkers } from "./register-workers.ts";

export type SwarmMode = "new" | "force" | "append";

/** The state as it is, compared with the engine; undefined when there is no swarm yet. Refuses a swarm that is still at work. */
export async function findSwarm(
  { state, workers, clock }: Pick<SwarmDeps, "state" | "workers" | "clock">,
  mode: SwarmMode,
  signal?: AbortSignal,
): Promise<SwarmState | undefined> {
  let found: SwarmState;
  try {
    found = await state.update((before) => reconcile(before, { workers, now: clock.now(), signal }));
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_NOT_FOUND")) return undefined;
    throw thrown;
  }
  const active = found.containers.filter(isActive).length;
  if (active === 0 || mode !== "new") return found;
  throw new AidoError(
    "SWARM_ACTIVE",
    `There is a swarm with ${active} pending or running worker${active === 1 ? "" : "s"}`,
    {
      hint: "Go on with it: `aido swarm resume`. Add to it: `aido swarm --append`. End it and begin anew: `aido swarm --force`.",
      details: { swarmId: found.swarmId, active },
    },
  );
}

/** Those of the files that are not being worked on already. */
export function newFiles(files: readonly TaskFile[], before: SwarmState | undefined): readonly TaskFile[] {
  const active = new Set(before?.containers.filter(isActive).map(({ taskFilePath }) => taskFilePath));
  return files.filter(({ path }) => !active.has(path));
}

export interface Beginning {
  readonly mode: SwarmMode;
  readonly files: readonly TaskFile[];
  readonly plan: WorkerPlan;
  readonly swarmId: string;
}

/** Writes the swarm down before anything of it runs: a worker for each file, pending. What is left of one before it goes. */
export async function beginSwarm(deps: SwarmDeps, beginning: Beginning): Promise<SwarmState> {
  const { state, records, clock } = deps;
  const { mode, files, plan } = beginning;
  const names = new Set(files.map(({ path }) => workerName(path)));
  await removeBefore(deps, (name) => mode !== "append" || names.has(name));
  const swarmId = mode === "append" ? await currentSwarm(deps, beginning.swarmId) : beginning.swarmId;
  // Before the state: a worker that is in it is run as it was asked for.
  for (const name of names) await records.write(newRecord(swarmId, name, plan));
  return await state.replace((before) => {
    const base =
      mode === "append" && before !== undefined
        ? before
        : startSwarm(before, { swarmId, now: clock.now(), force: mode === "force" });
    return registerWorkers(base, files, clock.now());
  });
}

async function currentSwarm({ state }: SwarmDeps, otherwise: string): Promise<string> {
  try {
    return (await state.read()).swarmId;
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_NOT_FOUND")) return otherwise;
    throw thrown;
  }
}

async function removeBefore(deps: SwarmDeps, isReplaced: (name: string) => boolean): Promise<void> {
  try {
    const { failed } = await cleanUpSwarm(deps, ({ containerName }) => isReplaced(containerName));
    const [first] = failed;
    if (first === undefined) return;
    throw new AidoError("CONTAINER_REMOVAL_FAILED", `Cannot remove ${first.worker}: ${first.error}`);
  } catch (thrown) {
    if (!isAidoError(thrown, "SWARM_NOT_FOUND")) throw thrown;
  }
}
