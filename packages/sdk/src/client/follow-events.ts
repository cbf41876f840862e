import type { ErrorBody } from "../protocol/errors.ts";
import { isLost, lostServer, pause } from "./lost-server.ts";
import { errorFromBody } from "./server-error.ts";
import { type ReceivedEvent, serverEvents } from "./server-events.ts";
import type { Call, Transport } from "./transport.ts";

/**
 * The events of a stream until its event `end`. When the connection breaks, or the server is away for a while, the
 * stream is asked for again with what `query` says then: where to go on is the caller's to remember.
 */
export async function* followEvents(
  transport: Transport,
  path: string,
  query: () => NonNullable<Call["query"]>,
  signal?: AbortSignal,
): AsyncGenerator<ReceivedEvent> {
  let heardAt = Date.now();
  for (;;) {
    let broken: unknown;
    try {
      const response = await transport.send(path, { query: query(), repeatable: true, signal });
      for await (const received of serverEvents(response, transport.url, signal)) {
        heardAt = Date.now();
        if (received.event === "error") throw errorFromBody(received.data as ErrorBody, 500);
        yield received;
        if (received.event === "end") return;
      }
    } catch (thrown) {
      if (signal?.aborted === true) throw signal.reason;
      if (!isLost(thrown)) throw thrown;
      broken = thrown;
    }
    // A server that takes every connection and says nothing is as good as none.
    if (Date.now() - heardAt > transport.retryForMs) throw broken ?? lostServer(transport.url, undefined);
    await pause(transport.retryDelayMs, signal);
  }
}
