import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../core/clock.ts";
import { objectNotFound } from "../../core/object-store/object-key.ts";
import type { HttpReply } from "../wire/http-sender.ts";
import { retry } from "../wire/retry.ts";
import type { S3Client } from "./s3-client.ts";
import { s3Error } from "./s3-error.ts";

export interface ReadDeps {
  readonly client: S3Client;
  readonly clock: Clock;
  readonly key: string;
  readonly where: string;
  readonly signal: AbortSignal | undefined;
}

/** A download that goes on where its connection broke, as long as the object is still the same. */
export async function readObject(deps: ReadDeps): Promise<AsyncIterable<Uint8Array>> {
  const first = await retry(deps.clock, deps.signal, () => ask(deps, 0, undefined));
  return follow(deps, first);
}

async function* follow(deps: ReadDeps, first: HttpReply): AsyncGenerator<Uint8Array, void, undefined> {
  const total = Number(first.headers["content-length"]);
  const { etag } = first.headers;
  let at = 0;
  let reply = first;
  let failures = 0;
  for (;;) {
    try {
      for await (const chunk of reply.body) {
        failures = 0;
        at += chunk.byteLength;
        yield chunk;
      }
      if (!Number.isFinite(total) || at === total) return;
    } catch (cause) {
      deps.signal?.throwIfAborted();
      failures += 1;
      if (failures > 3 || !Number.isFinite(total)) throw cutOff(deps, at, cause);
    } finally {
      reply.discard();
    }
    if (at >= total) throw cutOff(deps, at);
    reply = await retry(deps.clock, deps.signal, () => ask(deps, at, etag));
  }
}

async function ask(deps: ReadDeps, from: number, etag: string | undefined): Promise<HttpReply> {
  const { client, key, signal, where } = deps;
  const range =
    from === 0 ? {} : { range: `bytes=${from}-`, ...(etag === undefined ? {} : { "if-match": etag }) };
  const reply = await client.send({ method: "GET", key, headers: range, signal });
  if (reply.status === (from === 0 ? 200 : 206) && (etag === undefined || reply.headers.etag === etag))
    return reply;
  if (from > 0 && (reply.status === 412 || reply.status === 404 || reply.status < 300)) {
    reply.discard();
    throw new AidoError("OBJECT_BROKEN", `${where} was changed while it was read`, { hint: "Try again." });
  }
  if (reply.status === 404) {
    const text = await reply.text().catch(() => "");
    throw objectNotFound(text.includes("NoSuchBucket") ? `${where}: its bucket is missing` : where);
  }
  throw await s3Error(reply, `Reading ${where}`);
}

function cutOff({ where }: ReadDeps, bytes: number, cause?: unknown): AidoError {
  return new AidoError("OBJECT_STORE_UNAVAILABLE", `Reading ${where} broke off after ${bytes} bytes`, {
    hint: "Check the connection to the S3 server and try again.",
    cause,
  });
}
