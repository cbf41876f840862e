import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import { orAborted } from "../supervisor/time-limit.ts";

/** Of files before compression. */
const LEAST_BYTES_PER_MS = 64;
/** Whatever the size: for what comes before the first byte and after the last. */
const PATIENCE_MS = 5 * 60_000;
const LOOK_MS = 5_000;
/** For one that was told to stop to clear away what it began. */
const CLEARING_MS = 10_000;

export interface PaceOptions {
  clock: Clock;
  /** How it is called in the error. */
  what: string;
  signal?: AbortSignal | undefined;
}

/**
 * Carries a stream, and raises DEADLINE_EXCEEDED when it comes forward more slowly than any connection worth the name:
 * the more there is, the longer it may take. Time is counted in sleeps, so no clock that is set changes it.
 * Whoever hears that it was given up may look: what had been carried is cleared away, unless the carrier heeds nothing.
 */
export async function atLeastPace<T>(
  { clock, what, signal }: PaceOptions,
  source: AsyncIterable<Uint8Array>,
  carry: (source: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [done, tooSlow] = [new AbortController(), new AbortController()];
  let bytes = 0;
  const counted = async function* () {
    for await (const chunk of source) {
      yield chunk;
      bytes += chunk.length;
    }
  };
  const watch = async () => {
    for (let passedMs = LOOK_MS; ; passedMs += LOOK_MS) {
      await clock.sleep(LOOK_MS, done.signal).catch(() => undefined);
      if (done.signal.aborted) return;
      if (passedMs > PATIENCE_MS + bytes / LEAST_BYTES_PER_MS) tooSlow.abort(slow(what, bytes, passedMs));
    }
  };
  const either = signal === undefined ? tooSlow.signal : AbortSignal.any([signal, tooSlow.signal]);
  const watching = watch();
  const carrying = carry(counted(), either);
  try {
    return await orAborted(carrying, either);
  } finally {
    if (either.aborted) await settledOr(carrying, clock, CLEARING_MS);
    done.abort();
    await watching;
  }
}

/** Until it has ended, however it did, or that much time has passed. */
async function settledOr(work: Promise<unknown>, clock: Clock, limitMs: number): Promise<void> {
  const settled = new AbortController();
  const ended = work.then(
    () => settled.abort(),
    () => settled.abort(),
  );
  await Promise.race([ended, clock.sleep(limitMs, settled.signal).catch(() => undefined)]);
}

function slow(what: string, bytes: number, passedMs: number): AidoError {
  const seconds = Math.round(passedMs / 1000);
  return new AidoError("DEADLINE_EXCEEDED", `${what} is too slow: ${bytes} bytes in ${seconds} s`, {
    hint: "Look at the object store and the way to it, or name another destination.",
  });
}
