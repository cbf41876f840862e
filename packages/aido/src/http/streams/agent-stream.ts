import type { AgentEvent } from "@aido/sdk/protocol";
import type { RequestContext } from "../request-context.ts";
import { eventStream, type ServerEvent } from "./event-stream.ts";

/** How one API says what an agent does. */
export interface AgentWire {
  toWire(event: AgentEvent): ServerEvent;
  /** Said after the last event. */
  done?: (() => ServerEvent) | undefined;
  /** Said when the run breaks off; without it that is told as every stream tells it. */
  failed?: ((thrown: unknown) => ServerEvent) | undefined;
}

/** A run as server-sent events. A client that leaves cancels its run: nobody else would hear of it. */
export async function agentStream(
  open: (signal: AbortSignal) => AsyncIterable<AgentEvent>,
  wire: AgentWire,
  request: RequestContext,
): Promise<Response> {
  const over = new AbortController();
  const leave = () => over.abort(new Error("the client has left"));
  request.signal.addEventListener("abort", leave, { once: true });
  const events = open(over.signal)[Symbol.asyncIterator]();
  // What is refused is answered as such, before a stream has begun.
  const first = await events.next().finally(() => request.signal.removeEventListener("abort", leave));
  return eventStream((signal) => passOn(first, events, over, wire, signal), request);
}

async function* passOn(
  first: IteratorResult<AgentEvent>,
  events: AsyncIterator<AgentEvent>,
  over: AbortController,
  wire: AgentWire,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const leave = () => over.abort(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    for (let next = first; next.done !== true; next = await events.next()) yield wire.toWire(next.value);
    if (wire.done !== undefined) yield wire.done();
  } catch (thrown) {
    if (wire.failed === undefined || signal.aborted) throw thrown;
    yield wire.failed(thrown);
  } finally {
    signal.removeEventListener("abort", leave);
    over.abort();
    await events.return?.().catch(() => undefined);
  }
}
