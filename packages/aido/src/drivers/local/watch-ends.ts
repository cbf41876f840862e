import { setTimeout as sleep } from "node:timers/promises";
import type { Container } from "../../core/driver/driver.ts";

const POLL_MS = 200;

/**
 * Polls rather than holds on to processes: they belong to no aido process, and a look at all of them costs less than
 * a millisecond per hundred.
 */
export async function watchEnds(
  list: () => Promise<readonly Container[]>,
  onEnd: (sandboxId: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let isFirstLook = true;
  let running = new Set<string>();
  let seen = new Set<string>();
  while (!signal.aborted) {
    const containers = await list();
    const now = new Set(containers.filter((one) => one.state === "running").map((one) => one.sandboxId));
    // What began and ended between two looks is news as well.
    const ended = containers
      .filter((one) => one.state === "exited")
      .map((one) => ({ id: one.sandboxId, key: `${one.sandboxId} ${one.startedAt?.getTime()}` }));
    for (const { id, key } of ended) {
      if (!isFirstLook && !seen.has(key)) onEnd(id);
    }
    for (const id of running) {
      if (!containers.some((one) => one.sandboxId === id)) onEnd(id);
    }
    isFirstLook = false;
    running = now;
    seen = new Set(ended.map(({ key }) => key));
    await sleep(POLL_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
