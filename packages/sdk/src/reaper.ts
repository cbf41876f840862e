import type { ErrorCode } from "./protocol/index.ts";

/** What one look of the reaper found, by sandbox id. */
export interface ReapReport {
  /** Nobody had used them for their idle timeout: stopped, with their files. */
  idle: readonly string[];
  /** At the end of their life: destroyed. */
  expired: readonly string[];
  /** Long unused as far as anybody asked them for something, but at work: left alone. */
  busy: readonly string[];
  /** Could not be ended; tried again at the next look. */
  failed: readonly { id: string; code: ErrorCode; message: string }[];
}

/** Stops what is idle and destroys what has reached the end of its life. A server does it by itself, again and again. */
export interface Reaper {
  /** With `dryRun` nothing is done: the report says what would be. */
  reap(options?: { dryRun?: boolean | undefined; signal?: AbortSignal | undefined }): Promise<ReapReport>;
}
