import { errorBody, wireError } from "../error-reply.ts";
import type { RequestContext } from "../request-context.ts";

export interface ServerEvent {
  event: string;
  data: unknown;
  id?: string;
}

/** Proxies cut connections that are silent for a minute. */
const KEEP_ALIVE_MS = 15_000;

/**
 * Server-sent events with back-pressure: the next event is taken only when the client has room for it. A source that is
 * made here gets the signal that is aborted when the client leaves or the server shuts down.
 */
export function eventStream(
  source: AsyncIterable<ServerEvent> | ((signal: AbortSignal) => AsyncIterable<ServerEvent>),
  request: RequestContext,
  keepAliveMs = KEEP_ALIVE_MS,
): Response {
  const encoder = new TextEncoder();
  const left = new AbortController();
  const over = AbortSignal.any([request.signal, request.draining, left.signal]);
  const iterator = (typeof source === "function" ? source(over) : source)[Symbol.asyncIterator]();
  let keepAlive: NodeJS.Timeout | undefined;
  const end = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearInterval(keepAlive);
    if (!left.signal.aborted) controller.close();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Sent at once, so that the client knows it is connected though nothing happens yet.
        controller.enqueue(encoder.encode(": connected\n\n"));
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(": keep-alive\n\n"));
        }, keepAliveMs);
        keepAlive.unref();
      },
      async pull(controller) {
        try {
          const { done, value } = await iterator.next();
          if (done === true) end(controller);
          else if (!left.signal.aborted) controller.enqueue(encoder.encode(format(value)));
        } catch (thrown) {
          if (!over.aborted) {
            // 200 was sent long ago, so the reason travels as the last event.
            const body = errorBody(wireError(thrown), request.requestId);
            controller.enqueue(encoder.encode(format({ event: "error", data: body })));
          }
          end(controller);
        }
      },
      async cancel() {
        clearInterval(keepAlive);
        left.abort();
        await iterator.return?.().catch(() => undefined);
      },
    },
    { highWaterMark: 4 },
  );
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

function format(event: ServerEvent): string {
  const id = event.id === undefined ? "" : `id: ${event.id}\n`;
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
