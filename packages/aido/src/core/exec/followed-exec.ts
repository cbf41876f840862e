import type { ExecInfo, OutputStream } from "@aido/sdk/protocol";
import type { ExecEnd, ExecRecord } from "../store/store.ts";

/** One exec as a reader sees it, whoever records it. */
export interface FollowedExec {
  /** How many bytes of each stream are in its file. */
  sizes(): Readonly<Record<OutputStream, number>>;
  /** The record, with the end once there is one. */
  record(): ExecRecord;
  isEnded(): boolean;
  /** Resolves when there may be more to see; then ask again who records it. */
  change(signal?: AbortSignal): Promise<void>;
}

export function toExecInfo(record: ExecRecord): ExecInfo {
  const { startedAt, endedAt } = record;
  return {
    id: record.id,
    sandboxId: record.sandboxId,
    argv: record.argv,
    status: record.status,
    exitCode: record.exitCode,
    signal: record.signal,
    ...(record.startError === undefined ? {} : { startError: record.startError }),
    startedAt,
    endedAt,
    durationMs: endedAt === undefined ? undefined : Math.max(0, endedAt.getTime() - startedAt.getTime()),
    stdoutBytes: record.stdoutBytes,
    stderrBytes: record.stderrBytes,
  };
}

/** An exec whose end is in the store: nothing about it changes any more. */
export class EndedExec implements FollowedExec {
  readonly #record: ExecRecord;

  constructor(record: ExecRecord) {
    this.#record = record;
  }

  sizes(): Readonly<Record<OutputStream, number>> {
    return { stdout: this.#record.stdoutBytes, stderr: this.#record.stderrBytes };
  }

  record(): ExecRecord {
    return this.#record;
  }

  isEnded(): boolean {
    return true;
  }

  async change(): Promise<void> {
    // Nothing will.
  }
}

export function withEnd(record: ExecRecord, end: ExecEnd): ExecRecord {
  return { ...record, ...end };
}
