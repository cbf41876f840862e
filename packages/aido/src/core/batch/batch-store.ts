import type { BatchAggregate, BatchInfo } from "@aido/sdk/protocol";
import type { Counts } from "../metrics/counters.ts";

export interface BatchRecord extends Omit<BatchInfo, "ended" | "failed"> {
  owner: string;
  /** Names the process that runs it; see core/process-identity.ts. */
  holder: string;
  aggregate: BatchAggregate | undefined;
}

export type BatchEnd = Pick<BatchRecord, "aggregate" | "expiresAt"> & {
  state: Exclude<BatchRecord["state"], "running">;
  endedAt: Date;
};

/** Whether a part could not be done, or says itself that it has failed. */
export function isFailed(item: object): boolean {
  const { error, success } = item as { error?: unknown; success?: boolean };
  return (typeof error === "object" && error !== null) || success === false;
}

/** Batches and what became of each part; a part is written once, when it has ended. */
export interface BatchStore {
  /** False when there is a batch with this id already. */
  insert(batch: BatchRecord): Promise<boolean>;
  get(id: string): Promise<BatchRecord | undefined>;
  /** Newest first. Everybody's when no owner is given. */
  list(query: { owner?: string | undefined; limit: number }): Promise<readonly BatchRecord[]>;
  /** Counts in the same step. False when that part has ended already, or the batch is no more. */
  endItem(id: string, position: number, result: object, counts: Counts): Promise<boolean>;
  /** What has ended, by position. */
  items(id: string): Promise<ReadonlyMap<number, object>>;
  /** How many parts have ended, and how many of them have failed. */
  progress(id: string): Promise<{ ended: number; failed: number }>;
  /** Only a running batch can end; false otherwise. */
  end(id: string, end: BatchEnd): Promise<boolean>;
  running(): Promise<readonly BatchRecord[]>;
  /** False when there is none. */
  remove(id: string): Promise<boolean>;
  /** Forgets what has ended and whose time is over, at most `limit`; cost grows with that. The number forgotten. */
  removeExpired(now: Date, limit: number): Promise<number>;
}
