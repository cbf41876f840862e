import { getSystemErrorName } from "node:util";
import { AidoError, type ErrorCode } from "@aido/sdk/protocol";
import type { ErrorFrame } from "./frames.ts";

const CODES: Readonly<Record<string, ErrorCode>> = {
  NOT_FOUND: "EXECUTION_NOT_FOUND",
  START_FAILED: "EXECUTION_FAILED",
  OFFSET_LOST: "OUTPUT_LOST",
  LIMIT: "QUOTA_EXCEEDED",
  UNSUPPORTED: "UNSUPPORTED",
};

/** `details.refusal` has the supervisor's own code, `details.errno` the name of the system's error. */
export function refusalToError(frame: ErrorFrame): AidoError {
  const code = CODES[frame.code] ?? "CONTAINER_LOST";
  const errno = errnoName(frame.errno);
  return new AidoError(code, `The sandbox refused: ${printable(frame.message)}`, {
    details: { refusal: printable(frame.code), ...(errno === undefined ? {} : { errno }) },
  });
}

export function errnoName(errno: number): string | undefined {
  if (errno === 0 || errno > 4095) return undefined;
  try {
    return getSystemErrorName(-errno);
  } catch {
    return undefined;
  }
}

/** The other side's words end up on terminals. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, "").slice(0, 500);
}
