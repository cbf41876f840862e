import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { IdempotencyStore } from "../core/access/idempotency.ts";

const KEY = /^[\x21-\x7e]{1,128}$/;
/** Keys are remembered this long. */
export const KEEP_ANSWERS_MS = 24 * 60 * 60_000;
const RETRY_AFTER_SECONDS = 1;
/** No request takes this long: whoever began it is gone. */
const ABANDONED_AFTER_MS = 15 * 60_000;

/**
 * Runs `work` once for a key of an owner. A repeated request gets the first answer; one that comes while the first is at
 * work is asked to come again; the same key with another body is refused. A failure frees the key.
 */
export async function idempotent(
  store: IdempotencyStore,
  request: { owner: string; key: string | undefined; operation: string; body: unknown },
  work: () => Promise<Response>,
): Promise<Response> {
  const { owner, key } = request;
  if (key === undefined) return work();
  if (!KEY.test(key)) {
    throw new AidoError(
      "VALIDATION_ERROR",
      "An idempotency key is 1 to 128 printable characters without spaces",
    );
  }
  const asked = JSON.stringify([request.operation, request.body]);
  const fingerprint = createHash("sha256").update(asked).digest("hex");
  const known = await begin(store, owner, key, fingerprint);
  if (known !== undefined) {
    if (known.fingerprint !== fingerprint) {
      throw new AidoError("EXECUTION_CONFLICT", "This idempotency key was used for another request");
    }
    if (known.answer === undefined) {
      throw new AidoError("CONTAINER_BUSY", "The first request with this key is still at work", {
        hint: "Ask again in a moment.",
        details: { retryAfterSeconds: RETRY_AFTER_SECONDS },
      });
    }
    return new Response(known.answer.body, {
      status: known.answer.status,
      headers: { "content-type": "application/json", "idempotency-replayed": "true" },
    });
  }
  try {
    const response = await work();
    const body = await response.clone().text();
    await store.finish(owner, key, { status: response.status, body });
    return response;
  } catch (thrown) {
    await store.abandon(owner, key);
    throw thrown;
  }
}

async function begin(store: IdempotencyStore, owner: string, key: string, fingerprint: string) {
  const now = new Date();
  const known = await store.begin(owner, key, fingerprint, now);
  const isAbandoned =
    known !== undefined &&
    known.answer === undefined &&
    now.getTime() - known.at.getTime() > ABANDONED_AFTER_MS;
  if (!isAbandoned) return known;
  await store.abandon(owner, key);
  return store.begin(owner, key, fingerprint, now);
}
