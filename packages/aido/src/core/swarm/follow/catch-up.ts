import { isAidoError } from "@aido/sdk/protocol";
import { recordFor, type WorkerPlan } from "../records/worker-record.ts";
import { updateContainer } from "../state/change-state.ts";
import type { SwarmContainer } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import type { WorkerEnd } from "../workers/workers.ts";
import { endingOf } from "./worker-end.ts";
import { WorkerProgress } from "./worker-progress.ts";

export interface CaughtUp {
  readonly swarmId: string;
  readonly entry: SwarmContainer;
  readonly plan: WorkerPlan;
  readonly file: TaskFile | undefined;
  /** So long is waited for an end; what still runs is left as it is. */
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads what a worker has said while nobody listened, and keeps it in its record and entry. Also lets the container of an adapter
 * that has ended end. For whoever holds the driver's lock.
 */
export async function catchUp(deps: SwarmDeps, { swarmId, entry, plan, ...more }: CaughtUp): Promise<void> {
  const { records, state, clock } = deps;
  const known = await records.read(swarmId, entry.containerName);
  const record = recordFor({ swarmId, entry, record: known, plan });
  const progress = new WorkerProgress(deps, record, more.file?.stories ?? []);
  const end = await readOn(deps, progress, entry.containerName, more);
  const { last } = progress.record;
  const ending =
    end === undefined || last === undefined ? undefined : endingOf(progress.record, end, undefined);
  if (ending !== undefined) progress.note({ reason: ending.reason });
  await records.write(progress.record);
  await state.update((before) => {
    if (
      before.swarmId !== swarmId ||
      !before.containers.some((each) => each.containerName === entry.containerName)
    ) {
      return before;
    }
    const changes = {
      ...(more.file === undefined ? {} : { storyProgress: progress.counts }),
      ...(ending === undefined ? {} : { status: ending.status, prUrl: ending.prUrl, acpPid: null }),
    };
    return updateContainer(before, entry.containerName, changes, clock.now());
  });
}

async function readOn(
  { workers, clock }: SwarmDeps,
  progress: WorkerProgress,
  name: string,
  { limitMs, signal }: Pick<CaughtUp, "limitMs" | "signal">,
): Promise<WorkerEnd | undefined> {
  const over = new AbortController();
  const given = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const timer = clock.sleep(limitMs, given).then(
    () => over.abort(),
    () => undefined,
  );
  try {
    for await (const event of workers.follow(name, progress.reopen(), given)) {
      if (event.type === "end") return event;
      progress.take(event);
    }
  } catch (thrown) {
    signal?.throwIfAborted();
    const isNews =
      isAidoError(thrown, "SWARM_MESSAGE_INVALID") ||
      isAidoError(thrown, "EXECUTION_NOT_FOUND") ||
      isAidoError(thrown, "CONTAINER_NOT_FOUND") ||
      isAidoError(thrown, "CONTAINER_LOST");
    if (!over.signal.aborted && !isNews) throw thrown;
  } finally {
    over.abort();
    await timer;
  }
  return undefined;
}
