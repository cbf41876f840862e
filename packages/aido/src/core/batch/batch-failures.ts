import { AidoError, type BatchItem, type BatchState, toAidoError } from "@aido/sdk/protocol";

/** What a part that failed says: never what only the log may know. */
export function toFailure(thrown: unknown): BatchItem<never> {
  const { code, message, hint } = toAidoError(thrown);
  const told = code === "INTERNAL_SERVER_ERROR" ? "aido failed to do this; its log has the reason" : message;
  return { error: { code, message: told, ...(hint === undefined ? {} : { hint }) } };
}

export function notNeeded(isEnough: boolean, cause?: unknown): AidoError {
  const why = isEnough ? "Another sandbox has answered first" : "The batch was cancelled";
  return new AidoError("CANCELLED", why, { cause });
}

/** What is said of a part that nothing was written down about. */
export function missingPart(state: BatchState): BatchItem<never> {
  const hint = "Look at the sandbox before it is done again.";
  if (state === "lost") {
    const message = "The server ended before this part of the batch did; it may have been at work";
    return toFailure(new AidoError("CONTAINER_LOST", message, { hint }));
  }
  if (state === "cancelled") {
    return toFailure(new AidoError("CANCELLED", "The batch was cancelled before this part", { hint }));
  }
  return toFailure(
    new AidoError("OUTPUT_LOST", "The result of this part could not be written down", { hint }),
  );
}
