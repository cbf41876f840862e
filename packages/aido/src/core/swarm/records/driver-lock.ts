import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { FileLock } from "../state/file-lock.ts";
import type { SwarmDirectory } from "./swarm-directory.ts";

const LOCK = "driver.lock";
const DRIVER = "driver.json";
/** Those that only look at a swarm hold the lock for a moment. */
const WAIT_MS = 5000;

/**
 * Held by the one process that starts and follows a swarm's workers, from before it looks at the state until it is done. The kernel
 * lets it go when that process is killed.
 */
export async function takeDriverLock(
  directory: SwarmDirectory,
  { pid, now, signal }: { pid: number; now: Date; signal?: AbortSignal | undefined },
): Promise<AsyncDisposable> {
  let lock = await tryDriverLock(directory, { signal });
  // Without a driver, it is somebody who looks that has it.
  if (lock === undefined && !(await isDriven(directory)))
    lock = await tryDriverLock(directory, { waitMs: WAIT_MS, signal });
  if (lock === undefined) throw await busy(directory);
  const driver = { pid, since: now.toISOString() };
  await directory.writeJson(DRIVER, driver);
  return {
    [Symbol.asyncDispose]: async () => {
      const over = directory.writeJson(DRIVER, { ...driver, isOver: true });
      await over.finally(() => lock[Symbol.asyncDispose]());
    },
  };
}

/** For whoever looks at a swarm that nobody drives, for a moment. Undefined when another process has it. */
export async function tryDriverLock(
  directory: SwarmDirectory,
  { waitMs = 0, signal }: { waitMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<AsyncDisposable | undefined> {
  return await directory.within(async (path) => {
    try {
      return await FileLock.take(path(LOCK), { shown: `.aimi/swarm/${LOCK}`, waitMs, signal });
    } catch (thrown) {
      if (isAidoError(thrown, "SWARM_STATE_BUSY")) return undefined;
      throw thrown;
    }
  });
}

async function readDriver(directory: SwarmDirectory): Promise<number | undefined> {
  const driver = (await directory.readJson(DRIVER)) as { pid?: unknown; isOver?: unknown } | undefined;
  const { pid, isOver } = driver ?? {};
  return isOver !== true && Number.isSafeInteger(pid) && (pid as number) > 0 ? (pid as number) : undefined;
}

/** What a driver that was killed wrote down says nothing. */
async function isDriven(directory: SwarmDirectory): Promise<boolean> {
  const pid = await readDriver(directory);
  if (pid === undefined) return false;
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function busy(directory: SwarmDirectory): Promise<AidoError> {
  const pid = await readDriver(directory);
  const who = pid === undefined ? "" : ` (process ${pid})`;
  return new AidoError("SWARM_ACTIVE", `Another aido runs this swarm already${who}`, {
    hint: "See it with `aido swarm status`, join it with `aido swarm --append`, or end its workers with `aido swarm stop`.",
    details: { pid },
  });
}
