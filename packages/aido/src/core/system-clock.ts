import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "./clock.ts";

/** The machine's own time. A sleep keeps the process alive; abort it to let go. */
export class SystemClock implements Clock {
  now(): Date {
    return new Date();
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    try {
      await sleep(ms, undefined, signal === undefined ? {} : { signal });
    } catch (thrown) {
      throw signal?.aborted ? signal.reason : thrown;
    }
  }
}
