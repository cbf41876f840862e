import type { CompletionStatus, WorkerMessage } from "./message.ts";

/** What became of a worker: its own word counts only with the exit code that belongs to it. */
export function workerOutcome(
  exitCode: number | undefined,
  last: WorkerMessage | undefined,
): CompletionStatus {
  if (last?.type !== "completion") return "failed";
  if (last.payload.status === "stopped") return "stopped";
  return exitCode === 0 && last.payload.status === "completed" ? "completed" : "failed";
}
