import type { ErrorCode } from "./protocol/index.ts";

/** What one collection did with sandboxes that have been stopped for long, by sandbox id. */
export interface CollectReport {
  /** From a stopped container to an image of it. */
  warmed: readonly string[];
  /** From the image to the object store. */
  cooled: readonly string[];
  /** Removed for good; only their evidence is kept. */
  removed: readonly string[];
  /** Could not be moved, and are as they were; tried again at the next collection. */
  failed: readonly { id: string; code: ErrorCode; message: string }[];
}

/** Moves sandboxes nobody has resumed for long to where they cost less. A server does it by itself, again and again. */
export interface Gc {
  /** With `dryRun` nothing is done: the report says what would be. */
  collect(options?: {
    dryRun?: boolean | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<CollectReport>;
}
