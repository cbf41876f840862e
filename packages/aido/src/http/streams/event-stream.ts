import { toAidoError } from "@aido/sdk/protocol";
import type { RequestContext } from "../request-context.ts";

export interface ServerEvent {
  event: string;
  data: unknown;
  id?: string;
}

/** Proxies cut connections that are silent for a minute. */
const KEEP_ALIVE_MS = 15_000;

/** Server-sent events with back-pressure: the next event is taken only when the client has room for it. */
export function eventStream(events: AsyncIterable<ServerEvent>, request: RequestContext): Response {
  const encoder = new TextEncoder();
  const iterator = events[Symbol.asyncIterator]();
  let keepAlive: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(": keep-alive\n\n"));
        }, KEEP_ALIVE_MS);
        keepAlive.unref();
      },
      async pull(controller) {
        try {
          const { done, value } = await iterator.next();
          if (done === true) {
            clearInterval(keepAlive);
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(format(value)));
        } catch (thrown) {
          clearInterval(keepAlive);
          if (!request.signal.aborted) {
            // 200 was sent long ago, so the reason travels as the last event.
            const body = toAidoError(thrown).toBody(request.requestId);
            controller.enqueue(encoder.encode(format({ event: "error", data: body })));
          }
          controller.close();
        }
      },
      async cancel() {
        clearInterval(keepAlive);
        await iterator.return?.();
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
