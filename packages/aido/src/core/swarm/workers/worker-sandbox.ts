import { AidoError, type CreateSandbox } from "@aido/sdk/protocol";
import { ANONYMOUS } from "../../access/owner-label.ts";
import type { SandboxRecord, SandboxStore } from "../../store/store.ts";
import { checkContainerName } from "../state/check-container.ts";
import type { WorkerRequest } from "./workers.ts";

/** Known to other tools; `swarm`, `adapter` and `round` are aido's own. */
export const WORKER_LABEL = {
  sandbox: "org.aimi.sandbox",
  taskFile: "org.aimi.task-file",
  swarm: "org.aimi.swarm",
  /** In the record alone: the adapter that has got its task. */
  adapter: "org.aimi.adapter",
  /** In the record alone: how often the container was started for an adapter, beyond the first time. */
  round: "org.aimi.round",
} as const;

/** The sandbox that a worker is. Its secrets are no part of it. */
export function toSandboxRequest(request: WorkerRequest, id: string): CreateSandbox {
  const { name, swarmId, taskFilePath, branchName, image, isolation, limits } = request;
  const { cpus, memoryBytes, memoryAndSwapBytes, diskBytes } = limits;
  return {
    id,
    name: checkContainerName(name),
    profile: "swarm",
    image,
    isolation,
    network: "bridge",
    // Sysbox maps its root to a user without rights on the host; nested engines need it.
    user: isolation === "sysbox" ? "0:0" : undefined,
    env: { IS_SANDBOX: "1", AIMI_BRANCH: branchName, SWARM_ID: swarmId },
    limits: { cpus, memoryBytes, swapBytes: memoryAndSwapBytes - memoryBytes, diskBytes },
    ttlMs: 0,
    idleTimeoutMs: 0,
    autoResume: false,
    labels: {
      [WORKER_LABEL.sandbox]: "true",
      [WORKER_LABEL.taskFile]: taskFilePath,
      [WORKER_LABEL.swarm]: swarmId,
    },
  };
}

/** By its whole name; a sandbox of another kind that is called so is no worker. */
export async function findWorker(sandboxes: SandboxStore, name: string): Promise<SandboxRecord | undefined> {
  const [record] = await sandboxes.find(checkContainerName(name), 1, ANONYMOUS);
  return record !== undefined && record.name === name && isWorker(record) ? record : undefined;
}

export async function getWorker(sandboxes: SandboxStore, name: string): Promise<SandboxRecord> {
  const record = await findWorker(sandboxes, name);
  if (record !== undefined) return record;
  throw new AidoError("CONTAINER_NOT_FOUND", `There is no worker ${name}`, {
    hint: "`aido sandbox-manager list` shows those there are.",
    details: { name },
  });
}

export function isWorker({ profile, labels }: SandboxRecord): boolean {
  return profile === "swarm" && labels[WORKER_LABEL.sandbox] === "true";
}
