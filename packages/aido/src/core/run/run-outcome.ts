import type { EndReason, ExecInfo, RunStatus } from "@aido/sdk/protocol";

export const TIMEOUT_EXIT_CODE = 124;

/** How a task, or a whole run, ended. */
export interface RunOutcome {
  status: Extract<RunStatus, "completed" | "failed" | "timeout">;
  exitCode: number | null;
  /** Why, where the exit code does not tell. */
  error?: string | undefined;
}

/** `ended` is how the sandbox came to its end, if it has; it tells what a lost exec cannot. */
export function toOutcome(exec: ExecInfo | undefined, ended: EndReason | undefined): RunOutcome {
  switch (exec?.status) {
    case "exited":
      return { status: exec.exitCode === 0 ? "completed" : "failed", exitCode: exec.exitCode ?? null };
    case "timeout":
      return {
        status: "timeout",
        exitCode: TIMEOUT_EXIT_CODE,
        error: "The task ran longer than its timeout",
      };
    case "out_of_memory":
      return { status: "failed", exitCode: exec.exitCode ?? 137, error: "The task ran out of memory" };
    case "output_limit":
      return {
        status: "failed",
        exitCode: exec.exitCode ?? 137,
        error: "The task wrote more output than is kept",
      };
    case "killed":
      return ended === "timeout"
        ? ttlOutcome()
        : {
            status: "failed",
            exitCode: exec.exitCode ?? null,
            error: `The task was ended by ${exec.signal ?? "a signal"}`,
          };
    default:
      return lostOutcome(ended);
  }
}

function lostOutcome(ended: EndReason | undefined): RunOutcome {
  switch (ended) {
    case "timeout":
      return ttlOutcome();
    case "out_of_memory":
      return { status: "failed", exitCode: 137, error: "The sandbox ran out of memory" };
    case "disk_full":
      return { status: "failed", exitCode: null, error: "The sandbox wrote more than its disk limit" };
    case "stopped":
      return { status: "failed", exitCode: null, error: "The sandbox was stopped while the task ran" };
    case undefined:
      return {
        status: "failed",
        exitCode: null,
        error: "The task's output could not be recorded to its end",
      };
    default:
      return { status: "failed", exitCode: null, error: "The sandbox ended before the task did" };
  }
}

function ttlOutcome(): RunOutcome {
  return { status: "timeout", exitCode: TIMEOUT_EXIT_CODE, error: "The sandbox's ttl is over" };
}
