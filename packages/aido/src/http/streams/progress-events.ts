import type { ServerEvent } from "./event-stream.ts";

/** A client that reads slowly misses steps, not the end. */
const MAX_WAITING = 1000;

/** Steps of some work as they happen, then its result as the event `end`. The work is over when the stream is. */
export async function* progressEvents(
  work: (onProgress: (step: string) => void, signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const waiting: string[] = [];
  const left = new AbortController();
  let wake = () => {};
  let isDone = false;
  const result = work(
    (step) => {
      if (waiting.length < MAX_WAITING) waiting.push(step);
      wake();
    },
    AbortSignal.any([signal, left.signal]),
  ).finally(() => {
    isDone = true;
    wake();
  });
  result.catch(() => undefined);
  try {
    for (;;) {
      const step = waiting.shift();
      if (step !== undefined) yield { event: "progress", data: { step } };
      else if (isDone) break;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    yield { event: "end", data: await result };
  } finally {
    left.abort();
    await result.catch(() => undefined);
  }
}
