import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";

/**
 * Gives work a signal that is aborted when the caller's is, or with DEADLINE_EXCEEDED when the time is up.
 * The returned promise does not wait for work that ignores it.
 */
export async function withTimeLimit<T>(
  options: { clock: Clock; limitMs: number; what: string; signal?: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const done = new AbortController();
  const onAbort = () => limit.abort(options.signal?.reason);
  if (options.signal?.aborted) onAbort();
  options.signal?.addEventListener("abort", onAbort, { once: true });
  options.clock
    .sleep(options.limitMs, done.signal)
    .then(() =>
      limit.abort(new AidoError("DEADLINE_EXCEEDED", `${options.what} took over ${options.limitMs} ms`)),
    )
    .catch(() => undefined);
  try {
    limit.signal.throwIfAborted();
    return await orAborted(work(limit.signal), limit.signal);
  } finally {
    done.abort();
    options.signal?.removeEventListener("abort", onAbort);
  }
}

/** Stops waiting when the signal is aborted; the work itself goes on. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
