import type { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";
import type { Container } from "../../core/driver/driver.ts";

const FIRST_POLL_MS = 2;
const LAST_POLL_MS = 50;
/** A supervisor listens within milliseconds; only when it takes longer is the engine asked whether it still lives. */
const ASK_AFTER_MS = 60;
const DEADLINE_MS = 30_000;

export interface SupervisorWait {
  readonly sandboxId: string;
  /** One attempt to reach the supervisor. */
  readonly connect: (signal: AbortSignal) => Promise<Duplex>;
  readonly inspect: () => Promise<Container | undefined>;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves when the supervisor accepts connections; rejects as soon as its container has ended instead. */
export async function waitForSupervisor(wait: SupervisorWait): Promise<void> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const signal = wait.signal === undefined ? deadline : AbortSignal.any([deadline, wait.signal]);
  const started = performance.now();
  let pollMs = FIRST_POLL_MS;
  let last: unknown;
  while (!signal.aborted) {
    try {
      await hangUp(await wait.connect(signal), signal);
      return;
    } catch (thrown) {
      last = thrown;
    }
    if (performance.now() - started > ASK_AFTER_MS) refuseEnded(wait.sandboxId, await wait.inspect());
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    pollMs = Math.min(pollMs * 2, LAST_POLL_MS);
  }
  wait.signal?.throwIfAborted();
  throw new AidoError(
    "CONTAINER_START_FAILED",
    `Sandbox ${wait.sandboxId} started, but its supervisor did not answer within ${DEADLINE_MS / 1000} s`,
    { details: { sandboxId: wait.sandboxId }, cause: last },
  );
}

/** An accepted connection that says nothing is closed by both sides. An error on the way means it was not accepted. */
async function hangUp(stream: Duplex, signal: AbortSignal): Promise<void> {
  try {
    stream.resume();
    stream.end();
    await finished(stream, { signal });
  } finally {
    stream.destroy();
  }
}

function refuseEnded(sandboxId: string, container: Container | undefined): void {
  if (container?.state === "running") return;
  const how =
    container === undefined ? "was removed" : `ended with exit code ${container.exitCode ?? "unknown"}`;
  throw new AidoError(
    "CONTAINER_START_FAILED",
    `Sandbox ${sandboxId} ${how} before its supervisor answered`,
    {
      hint: "The image may be for another processor, or the memory limit too small to start in.",
      details: { sandboxId, exitCode: container?.exitCode },
    },
  );
}
