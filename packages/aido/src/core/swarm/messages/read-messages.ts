import { AidoError } from "@aido/sdk/protocol";
import { LineSplitter } from "./line-splitter.ts";
import { isFinal, type WorkerMessage } from "./message.ts";
import { messageError } from "./message-error.ts";
import { parseMessage } from "./parse-message.ts";

/**
 * A worker's messages from its standard output: any progress, then exactly one completion or error, then the end.
 * Whatever breaks that is an error, also when it comes behind the last message. Logs are on standard error, which
 * nobody reads here. At most one message is kept in memory; empty lines are passed over.
 */
export async function* readMessages(
  stdout: AsyncIterable<Uint8Array>,
  { signal }: { signal?: AbortSignal } = {},
): AsyncGenerator<WorkerMessage, void, undefined> {
  let isOver = false;
  for await (const line of readLines(stdout, signal)) {
    if (isOver) throw messageError("(order)", "comes behind the last message");
    const message = parseMessage(line);
    if (message.type === "task-request")
      throw messageError("type", "is task-request, which only the host sends");
    isOver = isFinal(message);
    yield message;
  }
  if (!isOver) {
    throw messageError("(order)", "ends without a completion or error", "ACP_CONNECTION_LOST");
  }
}

async function* readLines(
  stdout: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const lines = new LineSplitter();
  for await (const chunk of untilAborted(stdout, signal)) {
    for (const { line } of lines.push(chunk)) yield line;
  }
  lines.end();
}

/** A source that never ends must not keep its reader for ever. */
async function* untilAborted<Item>(source: AsyncIterable<Item>, signal?: AbortSignal): AsyncGenerator<Item> {
  const iterator = source[Symbol.asyncIterator]();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new AidoError("CANCELLED", "Reading the worker's messages was cancelled"));
  });
  aborted.catch(() => undefined);
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted) abort();
  try {
    for (;;) {
      const next = await Promise.race([aborted, iterator.next()]);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    // Not awaited: a generator that waits for its source would not answer before the source does.
    iterator.return?.()?.catch(() => undefined);
  }
}
