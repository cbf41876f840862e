import type { ExecInfo, RunSummary } from "@aido/sdk/protocol";

/** The codes a script can tell apart from its command's own. */
export const EXIT = {
  timedOut: 124,
  aidoFailed: 125,
  outOfMemory: 137,
  interrupted: 130,
  terminated: 143,
} as const;

export function execExitCode(info: ExecInfo): number {
  if (info.status === "timeout") return EXIT.timedOut;
  if (info.status === "out_of_memory") return info.exitCode ?? EXIT.outOfMemory;
  return info.exitCode ?? EXIT.aidoFailed;
}

export function runExitCode(summary: RunSummary): number {
  if (summary.status === "timeout") return EXIT.timedOut;
  return summary.exitCode ?? EXIT.aidoFailed;
}
