import type { Container } from "../../driver/driver.ts";
import type { SandboxRecord } from "../../store/store.ts";
import { WORKER_LABEL } from "./worker-sandbox.ts";
import type { WorkerInfo, WorkerState } from "./workers.ts";

/** What the engine knows of a worker's container, in the words of a swarm. */
export function toWorkerInfo(
  record: SandboxRecord,
  container: Container | undefined,
  hasAdapter = record.labels[WORKER_LABEL.adapter] !== undefined,
): WorkerInfo {
  const name = record.name ?? record.id;
  if (container === undefined) return { name, exists: false, swarmState: "not_found" };
  const { exitCode, containerId, runtime, startedAt, finishedAt } = container;
  return {
    name,
    exists: true,
    swarmState: toWorkerState(container, hasAdapter),
    dockerState: container.nativeState ?? container.state,
    exitCode,
    containerId,
    image: record.image,
    runtime,
    taskFilePath: record.labels[WORKER_LABEL.taskFile] || undefined,
    createdAt: record.createdAt,
    startedAt,
    finishedAt,
  };
}

/** Without an adapter that has its task, a container that runs waits, and one that ended well has completed nothing. */
export function toWorkerState(
  { state, nativeState = state, exitCode }: Pick<Container, "state" | "nativeState" | "exitCode">,
  hasAdapter: boolean,
): WorkerState {
  switch (nativeState) {
    case "created":
      return "pending";
    case "running":
    case "restarting":
      return hasAdapter ? "running" : "pending";
    case "paused":
    case "removing":
      return "stopped";
    case "exited":
      if (exitCode !== 0) return "failed";
      return hasAdapter ? "completed" : "stopped";
    default:
      return "failed";
  }
}
