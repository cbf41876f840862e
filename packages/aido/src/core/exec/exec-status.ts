import { constants } from "node:os";
import { AidoError, type ErrorBody, type ExecStatus } from "@aido/sdk/protocol";
import type { EndFrame } from "../supervisor/frames.ts";
import { END_FLAG } from "../supervisor/protocol.ts";

const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number as number, name]),
);

export interface EndOutcome {
  status: Exclude<ExecStatus, "running">;
  exitCode: number | undefined;
  signal: string | undefined;
  /** Why the program could not be started. */
  startError?: ErrorBody["error"] | undefined;
  unrecorded?: false;
}

export const LOST: EndOutcome = { status: "lost", exitCode: undefined, signal: undefined };

/** Why it ended comes before how: a command that a timeout made exit with 0 has timed out. */
export function toEndOutcome(end: EndFrame): EndOutcome {
  const isSignal = end.how === 2;
  return {
    status: toStatus(end.flags, isSignal),
    exitCode: isSignal ? 128 + end.code : end.code,
    signal: isSignal ? (SIGNAL_NAMES.get(end.code) ?? `SIG${end.code}`) : undefined,
  };
}

function toStatus(flags: number, isSignal: boolean): EndOutcome["status"] {
  if (flags & END_FLAG.timeout) return "timeout";
  if (flags & END_FLAG.outOfMemory) return "out_of_memory";
  if (flags & END_FLAG.outputLimit) return "output_limit";
  return flags & END_FLAG.killed || isSignal ? "killed" : "exited";
}

/** Takes `TERM`, `SIGTERM` or `15`. */
export function toSignalNumber(signal: string): number {
  const name = signal.toUpperCase().replace(/^(?!SIG)/, "SIG");
  const number = /^\d+$/.test(signal) ? Number(signal) : (constants.signals as Record<string, number>)[name];
  if (number === undefined || number < 1 || number > 64) {
    throw new AidoError("VALIDATION_ERROR", `There is no signal ${signal}`, {
      hint: "Use a name such as TERM, INT or KILL, or a number from 1 to 64.",
    });
  }
  return number;
}
