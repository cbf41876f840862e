import type { Clock } from "../clock.ts";
import type { WorkerRecords } from "./records/worker-records.ts";
import type { SwarmStateFile } from "./state/swarm-state-file.ts";
import type { SwarmEvent } from "./swarm-event.ts";
import type { WorkerLimits, Workers } from "./workers/workers.ts";

/** What whoever runs a swarm works with. */
export interface SwarmDeps {
  readonly workers: Workers;
  readonly state: Pick<SwarmStateFile, "read" | "update" | "replace">;
  readonly records: Pick<WorkerRecords, "read" | "write" | "remove">;
  readonly clock: Clock;
  readonly emit: (event: SwarmEvent) => void;
  /** This process. */
  readonly pid: number;
}

/** What all workers of a swarm have in common. */
export interface WorkerSurroundings {
  readonly repoUrl: string;
  readonly limits: WorkerLimits;
  /** Of the project; for workers whose plan names no other. */
  readonly image: string;
  /** Of whoever runs the swarm; workers get what is theirs of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What a worker has to put its work away when it is stopped. */
  readonly stopGraceMs: number;
}
