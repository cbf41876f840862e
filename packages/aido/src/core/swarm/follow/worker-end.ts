import type { CompletionStatus, StandardErrorCode } from "../messages/message.ts";
import type { WorkerRecord } from "../records/worker-record.ts";
import type { WorkerEnd } from "../workers/workers.ts";

export interface Ending {
  readonly status: CompletionStatus;
  readonly reason?: string | undefined;
  readonly prUrl: string | null;
  readonly errors: readonly string[];
}

export interface HostDecision {
  readonly status: "failed" | "stopped";
  readonly reason: string;
}

const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"];
const STOP_CODES = [130, 143];

/** How a worker ended: by its own last word where it goes with its exit code, else by what the host decided or saw. */
export function endingOf(
  { last }: Pick<WorkerRecord, "last">,
  end: WorkerEnd,
  decision: HostDecision | undefined,
): Ending {
  const prUrl = last !== undefined && "prUrl" in last ? last.prUrl : null;
  if (decision?.status === "failed") return { ...decision, prUrl, errors: [decision.reason] };
  if (last !== undefined && "errors" in last) {
    const isStopped = last.status === "stopped" || (decision !== undefined && last.status !== "completed");
    if (isStopped)
      return { status: "stopped", reason: decision?.reason ?? last.errors[0], prUrl, errors: last.errors };
    if (last.status === "completed" && end.exitCode === 0)
      return { status: "completed", prUrl, errors: last.errors };
    const reason =
      last.errors[0] ??
      (last.status === "failed" ? "It says that it failed" : (codeOf(end) ?? describeEnd(end)));
    return { status: "failed", reason, prUrl, errors: last.errors.length > 0 ? last.errors : [reason] };
  }
  if (decision !== undefined) return { ...decision, prUrl, errors: [decision.reason] };
  const reason =
    last === undefined
      ? (codeOf(end) ?? `It ended without a last message: ${describeEnd(end)}`)
      : `${last.code}: ${last.message}`;
  return {
    status: last === undefined && wasStopped(end) ? "stopped" : "failed",
    reason,
    prUrl,
    errors: [reason],
  };
}

function wasStopped({ exitCode, signal, timedOut }: WorkerEnd): boolean {
  if (timedOut) return false;
  return signal === undefined
    ? exitCode !== undefined && STOP_CODES.includes(exitCode)
    : STOP_SIGNALS.includes(signal);
}

/** As an adapter would say it that still could. */
function codeOf({ outOfMemory, timedOut }: WorkerEnd): string | undefined {
  if (outOfMemory) return told("CONTAINER_OOM", "It ran out of memory");
  return timedOut ? told("CONTAINER_TIMEOUT", "The time of its container is over") : undefined;
}

const told = (code: StandardErrorCode, message: string) => `${code}: ${message}`;

function describeEnd({ exitCode, signal }: WorkerEnd): string {
  if (signal !== undefined) return `it was ended by ${signal}`;
  return exitCode === undefined ? "its container was lost" : `exit code ${exitCode}`;
}
