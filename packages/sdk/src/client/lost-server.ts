import { AidoError, isAidoError } from "../protocol/errors.ts";

/** The connection did not come about, or broke before the answer was complete. */
export function lostServer(url: string, cause: unknown): AidoError {
  return new AidoError("RUNTIME_UNAVAILABLE", `The server at ${url} does not answer`, {
    cause,
    hint: "Is `aido serve` running there? AIDO_URL and --server name the server.",
    details: { connection: true },
  });
}

/** Whether the same request may be answered by the server a moment later. */
export function isLost(thrown: unknown): boolean {
  if (isAidoError(thrown, "SHUTTING_DOWN")) return true;
  // The first of two equal requests is still at work; its answer is then given to both.
  if (isAidoError(thrown, "CONTAINER_BUSY")) return "retryAfterSeconds" in thrown.details;
  return isAidoError(thrown, "RUNTIME_UNAVAILABLE") && thrown.details["connection"] === true;
}

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", aborted, { once: true });
    function done() {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }
    function aborted() {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    }
  });
}
