import { isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../core/clock.ts";

const ATTEMPTS = 5;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;

/** Again while the store is away, each time later and at a random moment, so that many waiters do not come at once. */
export async function retry<T>(
  clock: Clock,
  signal: AbortSignal | undefined,
  work: (attempt: number) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (thrown) {
      if (attempt === ATTEMPTS || !isAidoError(thrown, "OBJECT_STORE_UNAVAILABLE")) throw thrown;
      const longest = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS);
      await clock.sleep(longest * (0.5 + Math.random() / 2), signal);
    }
  }
}
