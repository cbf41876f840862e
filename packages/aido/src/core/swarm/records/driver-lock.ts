import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { FileLock } from "../state/file-lock.ts";
import type { SwarmDirectory } from "./swarm-directory.ts";

const LOCK = "driver.lock";
const DRIVER = "driver.json";

/**
 * Held by the one process that starts and follows a swarm's workers, from before it looks at the state until it is done. The kernel
 * lets it go when that process is killed.
 */
export async function takeDriverLock(
  directory: SwarmDirectory,
  { pid, now, signal }: { pid: number; now: Date; signal?: AbortSignal | undefined },
): Promise<AsyncDisposable> {
  return await directory.within(async (path) => {
    try {
      const lock = await FileLock.take(path(LOCK), { shown: `.aimi/swarm/${LOCK}`, waitMs: 0, signal });
      await directory.writeJson(DRIVER, { pid, since: now.toISOString() });
      return lock;
    } catch (thrown) {
      if (!isAidoError(thrown, "SWARM_STATE_BUSY")) throw thrown;
      throw await busy(directory, thrown);
    }
  });
}

async function busy(directory: SwarmDirectory, cause: unknown): Promise<AidoError> {
  const driver = (await directory.readJson(DRIVER)) as { pid?: unknown } | undefined;
  const who = Number.isSafeInteger(driver?.pid) ? ` (process ${driver?.pid})` : "";
  return new AidoError("SWARM_ACTIVE", `Another aido runs this swarm already${who}`, {
    hint: "See it with `aido swarm status`, join it with `aido swarm --append`, or end its workers with `aido swarm stop`.",
    details: { pid: driver?.pid },
    cause,
  });
}
