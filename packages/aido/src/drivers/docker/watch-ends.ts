import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";
import { readLines } from "./read-lines.ts";

interface EndEvent {
  timeNano?: number;
  Actor?: { Attributes?: Record<string, string> };
}

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

/**
 * Follows the engine's events until the signal. When the engine goes away it is asked again from the last event on,
 * so an end that happened in between is told late rather than never.
 */
export async function watchEnds(
  engine: Engine,
  scope: string,
  onEnd: (sandboxId: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let since = Date.now() / 1000;
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      for await (const event of endEvents(engine, scope, since, signal)) {
        retryMs = FIRST_RETRY_MS;
        // One nanosecond later would be lost in a double: a repeated end is harmless, a lost one is not.
        if (event.timeNano !== undefined) since = event.timeNano / 1e9;
        const sandboxId = event.Actor?.Attributes?.[LABEL.sandbox];
        if (sandboxId !== undefined) onEnd(sandboxId);
      }
    } catch (thrown) {
      if (signal.aborted) return;
      if (!isConnectionLoss(thrown)) throw thrown;
    }
    if (signal.aborted) return;
    await sleep(retryMs, undefined, { signal }).catch(() => undefined);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

function isConnectionLoss(thrown: unknown): boolean {
  const code = (thrown as { code?: unknown } | undefined)?.code;
  return code === "RUNTIME_UNAVAILABLE" || code === "ECONNRESET" || code === "ERR_STREAM_PREMATURE_CLOSE";
}

async function* endEvents(
  engine: Engine,
  scope: string,
  since: number,
  signal: AbortSignal,
): AsyncGenerator<EndEvent> {
  const filters = { type: ["container"], event: ["die"], label: [`${LABEL.scope}=${scope}`] };
  const stream = (await engine.call({ doing: "watching sandboxes" }, () =>
    engine.docker.getEvents({ filters, since: since.toFixed(6), abortSignal: signal } as object),
  )) as Readable;
  const stop = () => stream.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const line of readLines(stream)) yield JSON.parse(line) as EndEvent;
  } finally {
    signal.removeEventListener("abort", stop);
    stream.destroy();
  }
}
