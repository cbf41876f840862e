import { setTimeout as sleep } from "node:timers/promises";
import { CONFLICT, ignoring, NOT_FOUND, NOT_MODIFIED, statusOf } from "./answer-status.ts";
import type { Place } from "./container-index.ts";
import type { Engine } from "./engine.ts";

/** An engine that is already removing a container refuses to do so again; it is asked until this has passed. */
const REMOVE_DEADLINE_MS = 60_000;
const REMOVE_POLL_MS = 50;
const STOP_MARGIN_MS = 60_000;

export async function startContainer(engine: Engine, place: Place, signal?: AbortSignal): Promise<void> {
  const container = engine.docker.getContainer(place.containerId);
  const action = {
    doing: "starting the sandbox",
    code: "CONTAINER_START_FAILED",
    sandboxId: place.sandboxId,
  } as const;
  await engine.call(action, (abortSignal) => container.start({ abortSignal }).catch(ignoring(NOT_MODIFIED)), {
    signal,
  });
}

/** The engine sends TERM, waits and sends KILL; it counts whole seconds. */
export async function stopContainer(
  engine: Engine,
  place: Place,
  graceMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const container = engine.docker.getContainer(place.containerId);
  const t = Math.ceil(graceMs / 1000);
  await engine.call(
    { doing: "stopping the sandbox", sandboxId: place.sandboxId },
    (abortSignal) => container.stop({ t, abortSignal }).catch(ignoring(NOT_MODIFIED)),
    { signal, timeoutMs: graceMs + STOP_MARGIN_MS },
  );
}

export async function removeContainer(engine: Engine, place: Place): Promise<void> {
  const container = engine.docker.getContainer(place.containerId);
  const action = {
    doing: "removing the sandbox",
    code: "CONTAINER_REMOVAL_FAILED",
    sandboxId: place.sandboxId,
  } as const;
  const deadline = performance.now() + REMOVE_DEADLINE_MS;
  while (true) {
    try {
      await engine.call(action, (abortSignal) =>
        container.remove({ force: true, v: true, abortSignal }).catch(ignoring(NOT_FOUND)),
      );
      return;
    } catch (thrown) {
      const cause = thrown instanceof Error ? thrown.cause : undefined;
      if (statusOf(cause) !== CONFLICT || performance.now() > deadline) throw thrown;
      await sleep(REMOVE_POLL_MS);
    }
  }
}
