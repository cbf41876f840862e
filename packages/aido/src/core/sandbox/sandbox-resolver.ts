import type { SandboxRecord } from "../store/store.ts";
import type { WakeOptions } from "./sandbox-waker.ts";

/** Turns what a user typed (id, unique prefix, name) into a record. */
export interface SandboxResolver {
  /** Raises CONTAINER_NOT_FOUND or CONTAINER_AMBIGUOUS. With an owner, nothing is known but what is that owner's. */
  resolve(reference: string, owner?: string): Promise<SandboxRecord>;
  /**
   * As `resolve`, and raises CONTAINER_NOT_RUNNING or CONTAINER_EXPIRED unless it can take commands now. A stopped one
   * is started first when it is to be, by its own setting or by the options.
   */
  resolveRunning(reference: string, options?: WakeOptions): Promise<SandboxRecord>;
}
