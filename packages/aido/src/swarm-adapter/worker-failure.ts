import { isAidoError, toAidoError } from "@aido/sdk/protocol";
import type { StandardErrorCode } from "../core/swarm/messages/message.ts";

/** Why the worker cannot go on, in the words of its last message. */
export class WorkerFailure extends Error {
  readonly code: StandardErrorCode;

  constructor(code: StandardErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Does the work; what it raises is told with this code. */
export async function failingAs<T>(
  code: StandardErrorCode,
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof WorkerFailure || isAidoError(thrown, "CANCELLED")) throw thrown;
    throw new WorkerFailure(code, `${what}: ${toAidoError(thrown).message}`, { cause: thrown });
  }
}

export function toFailure(thrown: unknown): WorkerFailure {
  if (thrown instanceof WorkerFailure) return thrown;
  const { code, message, details } = toAidoError(thrown);
  if (code === "TASK_FILE_INVALID" || code === "TASK_FILE_NOT_FOUND") return new WorkerFailure(code, message);
  if (code === "VALIDATION_ERROR") return new WorkerFailure("INVALID_INPUT", message);
  const answer = (details["answer"] as StandardErrorCode | undefined) ?? "UNKNOWN_ERROR";
  return new WorkerFailure(answer, message, { cause: thrown });
}
