import type { SandboxRecord } from "../store/store.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** Ends are told by the driver; this only bounds how long a missed one stays unseen. */
const POLL_MS = 1000;

/** Resolves with the first look at a sandbox that finds it not running. */
export async function untilEnded(
  { driver, clock }: Pick<SandboxDeps, "driver" | "clock">,
  sandboxId: string,
  look: () => Promise<SandboxRecord>,
  signal: AbortSignal,
): Promise<SandboxRecord> {
  const done = new AbortController();
  const ended = new Set<() => void>();
  const watching = driver.watch((id) => {
    if (id === sandboxId) for (const wake of ended) wake();
  }, done.signal);
  watching.catch(() => undefined);
  try {
    for (;;) {
      const record = await look();
      if (record.state !== "running") return record;
      const nap = new AbortController();
      const wake = () => nap.abort();
      ended.add(wake);
      await clock.sleep(POLL_MS, AbortSignal.any([signal, nap.signal])).catch(() => undefined);
      ended.delete(wake);
      signal.throwIfAborted();
    }
  } finally {
    done.abort();
  }
}
