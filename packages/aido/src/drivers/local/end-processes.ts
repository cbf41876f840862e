import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";
import { isAlive, type ProcessIdentity } from "./process-table.ts";

const POLL_MS = 5;
const KILL_LIMIT_MS = 10_000;

/** TERM makes the supervisor end what it runs; KILL to the first process of a namespace ends all the others. */
export async function endSandboxProcesses(
  supervisor: ProcessIdentity,
  graceMs: number,
  signal?: AbortSignal,
): Promise<void> {
  if (graceMs > 0) {
    send(supervisor, "SIGTERM");
    if (await until(() => !isAlive(supervisor), graceMs, signal)) return;
  }
  send(supervisor, "SIGKILL");
  if (await until(() => !isAlive(supervisor), KILL_LIMIT_MS, signal)) return;
  throw new AidoError(
    "CONTAINER_REMOVAL_FAILED",
    `Process ${supervisor.pid} does not end though it was killed`,
    {
      hint: "It waits in the kernel, often for a disk or network file system that does not answer.",
    },
  );
}

export async function until(
  condition: () => boolean,
  limitMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const giveUpAt = Date.now() + limitMs;
  while (!condition()) {
    if (Date.now() > giveUpAt) return false;
    await sleep(POLL_MS, undefined, signal === undefined ? {} : { signal });
  }
  return true;
}

function send(target: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "ESRCH") throw thrown;
  }
}
