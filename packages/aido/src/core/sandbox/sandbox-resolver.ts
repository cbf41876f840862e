import type { SandboxRecord } from "../store/store.ts";

/** Turns what a user typed (id, unique prefix, name) into a record. */
export interface SandboxResolver {
  /** Raises CONTAINER_NOT_FOUND or CONTAINER_AMBIGUOUS. */
  resolve(reference: string): Promise<SandboxRecord>;
  /** As `resolve`, and raises CONTAINER_NOT_RUNNING or CONTAINER_EXPIRED unless it can take commands now. */
  resolveRunning(reference: string): Promise<SandboxRecord>;
}
