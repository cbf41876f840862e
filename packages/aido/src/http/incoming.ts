import { AidoError } from "@aido/sdk/protocol";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/**
 * The request as Node has it. The web's Request, its body stream and its signal cost as much as the rest of a small
 * request together, so they are used only where there is no connection: in a program that calls the API directly.
 */
export function connectionOf(http: Context): HttpBindings | undefined {
  const bindings = http.env as Partial<HttpBindings> | undefined;
  return bindings?.incoming === undefined ? undefined : (bindings as HttpBindings);
}

/** Aborted when the client goes away before it has its whole reply. */
export function clientSignal(http: Context): AbortSignal {
  const outgoing = connectionOf(http)?.outgoing;
  if (outgoing === undefined) return http.req.raw.signal;
  const leaving = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) leaving.abort();
  });
  return leaving.signal;
}

/** Undefined for a program that calls the API directly. */
export function clientAddress(http: Context): string | undefined {
  return connectionOf(http)?.incoming.socket.remoteAddress;
}

const JSON_LIMIT_MS = 10 * 60_000;
const MAX_TIMER_MS = 2 ** 31 - 1;
const BODY_IDLE = "bodyIdleMs";

/** How long its body may make the server wait for the next byte; 0 is no limit. */
export function limitBodyIdle(http: Context, ms: number): void {
  if (ms > 0) http.set(BODY_IDLE, Math.min(ms, MAX_TIMER_MS));
}

/** Reads at most `limit` bytes, however long the client says or makes its body. */
export async function readJson(http: Context, limit: number): Promise<unknown> {
  const tooLarge = () =>
    new AidoError("PAYLOAD_TOO_LARGE", `The body is larger than ${limit} bytes`, {
      hint: "Send files with PUT …/files, which streams them.",
    });
  if (Number(http.req.header("content-length") ?? 0) > limit) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const end = performance.now() + JSON_LIMIT_MS;
  for await (const chunk of bodyChunks(http)) {
    if (performance.now() > end) throw tooSlow(JSON_LIMIT_MS);
    length += chunk.length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  if (length === 0) return {};
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (cause) {
    throw new AidoError("VALIDATION_ERROR", "The body is not JSON", { cause });
  }
}

/**
 * The body as it arrives; a client that goes away in the middle of it has cancelled its request. Time counts only while
 * more is waited for, so that an upload may take as long as it goes on.
 */
export async function* bodyChunks(http: Context): AsyncGenerator<Uint8Array, void, undefined> {
  // Whoever stops reading still has to be able to answer.
  const chunks =
    connectionOf(http)?.incoming.iterator({ destroyOnReturn: false }) ??
    http.req.raw.body?.values({ preventCancel: true });
  if (chunks === undefined) return;
  const idleMs = http.get(BODY_IDLE) as number | undefined;
  let isWaiting = false;
  try {
    for (;;) {
      isWaiting = true;
      const coming = chunks.next().catch((cause: unknown) => {
        throw new AidoError("CANCELLED", "The request's body ended before it was complete", { cause });
      });
      const next = await (idleMs === undefined ? coming : within(idleMs, coming));
      isWaiting = false;
      if (next.done === true) return;
      yield next.value as Uint8Array;
    }
  } finally {
    const ended = chunks.return?.();
    // It cannot end before what is waited for, which ends with the connection.
    if (isWaiting) void ended?.catch(() => undefined);
    else await ended;
  }
}

async function within<T>(ms: number, coming: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow(ms)), ms);
  });
  try {
    return await Promise.race([coming, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooSlow(ms: number): AidoError {
  return new AidoError("REQUEST_TIMEOUT", `The request's body was not complete within ${ms} ms`, {
    hint: "Send it without pauses; serve.bodyIdleTimeout says how long one may be.",
  });
}
