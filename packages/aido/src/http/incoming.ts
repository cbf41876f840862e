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

/** Reads at most `limit` bytes, however long the client says or makes its body. */
export async function readJson(http: Context, limit: number): Promise<unknown> {
  const tooLarge = () =>
    new AidoError("PAYLOAD_TOO_LARGE", `The body is larger than ${limit} bytes`, {
      hint: "Send files with PUT …/files, which streams them.",
    });
  if (Number(http.req.header("content-length") ?? 0) > limit) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bodyChunks(http)) {
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

/** The body as it arrives; a client that goes away in the middle of it has cancelled its request. */
export async function* bodyChunks(http: Context): AsyncGenerator<Uint8Array, void, undefined> {
  // Whoever stops reading still has to be able to answer.
  const chunks =
    connectionOf(http)?.incoming.iterator({ destroyOnReturn: false }) ??
    http.req.raw.body?.values({ preventCancel: true });
  if (chunks === undefined) return;
  try {
    for (;;) {
      const next = await chunks.next().catch((cause: unknown) => {
        throw new AidoError("CANCELLED", "The request's body ended before it was complete", { cause });
      });
      if (next.done === true) return;
      yield next.value as Uint8Array;
    }
  } finally {
    await chunks.return?.();
  }
}
