import { AidoError, type ErrorCode, type ExecInfo, type ExecRequest, isAidoError } from "@aido/sdk/protocol";
import type { ExecRecord } from "../store/store.ts";
import { type EndOutcome, LOST } from "./exec-status.ts";

/** What to tell about a program that the sandbox could not start. */
export function cannotStart(
  exec: { id: string; sandboxId: string; argv: readonly string[] },
  thrown: unknown,
): unknown {
  if (!isAidoError(thrown, "EXECUTION_FAILED")) return thrown;
  const errno = thrown.details["errno"];
  return new AidoError("EXECUTION_FAILED", `Cannot run ${JSON.stringify(exec.argv[0])}: ${thrown.message}`, {
    hint:
      errno === "ENOENT"
        ? "There is no such command in the sandbox, or its working directory is missing."
        : undefined,
    details: { ...thrown.details, execId: exec.id, sandboxId: exec.sandboxId },
    cause: thrown,
  });
}

/** As a shell would say it: 127 not found, 126 not runnable. What was said is kept, to be said again. */
export function toFailedStart(thrown: unknown, signal: AbortSignal | undefined): EndOutcome {
  if (isAidoError(thrown) && (thrown.code === "EXECUTION_FAILED" || "refusal" in thrown.details)) {
    const isMissing = thrown.code === "EXECUTION_FAILED" && thrown.details["errno"] === "ENOENT";
    const startError = thrown.toBody().error;
    return {
      status: "exited",
      exitCode: isMissing ? 127 : 126,
      signal: undefined,
      startError,
      unrecorded: false,
    };
  }
  return signal?.aborted ? { status: "killed", exitCode: 137, signal: "SIGKILL" } : LOST;
}

/** A request that has been made before gets the same again; one that asks for something else with its id is refused. */
export function refuseOther(
  exec: ExecRecord,
  { argv, fingerprint }: Pick<ExecRequest, "argv" | "fingerprint">,
): void {
  const isSameCommand = exec.argv.length === argv.length && exec.argv.every((word, at) => word === argv[at]);
  const isComparable = exec.fingerprint !== undefined && fingerprint !== undefined;
  if (isSameCommand && (!isComparable || exec.fingerprint === fingerprint)) return;
  const what = isSameCommand ? "the same command with other input, files or settings" : "another command";
  throw new AidoError("EXECUTION_CONFLICT", `The id ${exec.id} belongs to ${what}`, {
    hint: "Use a new id, or none.",
    details: { execId: exec.id },
  });
}

export function mustHaveStarted(exec: ExecInfo): ExecInfo {
  if (exec.startError === undefined) return exec;
  const { code, message, hint, details } = exec.startError;
  throw new AidoError(code as ErrorCode, message, { hint, details });
}
