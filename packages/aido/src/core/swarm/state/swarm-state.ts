export const WORKER_STATUSES = ["pending", "running", "completed", "failed", "stopped"] as const;
export type WorkerStatus = (typeof WORKER_STATUSES)[number];

/** Counts of the stories of one task file. */
export interface StoryProgress {
  total: number;
  completed: number;
  failed: number;
  inProgress: number;
  pending: number;
}

/** One worker: its container, the task file it was given and the branch it works on. */
export interface SwarmContainer {
  containerId: string;
  containerName: string;
  taskFilePath: string;
  branchName: string;
  status: WorkerStatus;
  prUrl?: string | null | undefined;
  storyProgress: StoryProgress;
  createdAt: string;
  updatedAt: string;
  acpPid?: number | null | undefined;
}

/** What `.aimi/swarm-state.json` holds. Other tools read and write it too: its form is the schema's, no more. */
export interface SwarmState {
  swarmId: string;
  createdAt: string;
  updatedAt: string;
  containers: SwarmContainer[];
}

/** Its worker has work ahead of it; the other statuses are final. */
export function isActive({ status }: SwarmContainer): boolean {
  return status === "pending" || status === "running";
}

/** The schema wants an id of every entry: that of a worker whose container is still to be made. */
export const NO_CONTAINER = "0".repeat(64);
