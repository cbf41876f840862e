import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { IdempotencyStore, KeptAnswer, KeyedRequest } from "../core/access/idempotency.ts";
import type { ProcessIdentity } from "../core/process-identity.ts";

const KEY = /^[\x21-\x7e]{1,128}$/;
/** Keys are remembered this long. */
export const KEEP_ANSWERS_MS = 24 * 60 * 60_000;
const RETRY_AFTER_SECONDS = 1;
/** No request takes this long: whoever began it is gone, though from here it cannot be seen. */
const ABANDONED_AFTER_MS = 15 * 60_000;

export interface Idempotency {
  store: IdempotencyStore;
  processes: ProcessIdentity;
}

/** By whoever died at the request, or is taken for dead. */
export type FindLeft = (since: Date) => Promise<Response | undefined>;

/**
 * Runs `work` once for a key of an owner. A repeated request gets the first answer; one that comes while the first is at
 * work is asked to come again; the same key with another body is refused. A failure frees the key. What somebody has done
 * who died before the answer was kept is found by `findLeft`.
 */
export async function idempotent(
  idempotency: Idempotency,
  request: { owner: string; key: string | undefined; operation: string; body: unknown },
  work: () => Promise<Response>,
  findLeft: FindLeft = async () => undefined,
): Promise<Response> {
  if (request.key === undefined) return work();
  const { store, processes } = idempotency;
  const asked = { ...keyed(request, request.key), holder: processes.self, at: new Date() };
  const { known, leftSince } = await begin(idempotency, asked);
  if (known !== undefined) {
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
    const left = leftSince === undefined ? undefined : await findLeft(leftSince);
    const response = left ?? (await work());
    const body = await response.clone().text();
    await store.finish(asked, { status: response.status, body });
    return response;
  } catch (thrown) {
    await store.abandon(asked);
    throw thrown;
  }
}

/**
 * Ties a key to a request whose effect has an id: with that id the same request again finds what the first one began,
 * also while it is at work and whatever has become of its server. Undefined without a key.
 */
export async function bindKey(
  idempotency: Idempotency,
  request: { owner: string; key: string | undefined; operation: string; body: unknown },
): Promise<{ id: string; isRepeated: boolean } | undefined> {
  if (request.key === undefined) return undefined;
  const { store, processes } = idempotency;
  const asked = { ...keyed(request, request.key), holder: processes.self, at: new Date() };
  const { known } = await begin(idempotency, asked);
  if (known === undefined) await store.finish(asked, { status: 202, body: "" });
  return { id: idOfKey(asked.owner, asked.key), isRepeated: known !== undefined };
}

/** Names what a request with this key has made. */
export function idOfKey(owner: string, key: string): string {
  const name = JSON.stringify([owner, key]);
  return `key_${createHash("sha256").update(name).digest("base64url").slice(0, 32)}`;
}

function keyed(
  request: { owner: string; operation: string; body: unknown },
  key: string,
): Pick<KeyedRequest, "owner" | "key" | "fingerprint"> {
  if (!KEY.test(key)) {
    throw new AidoError(
      "VALIDATION_ERROR",
      "An idempotency key is 1 to 128 printable characters without spaces",
    );
  }
  const asked = JSON.stringify([request.operation, request.body]);
  return { owner: request.owner, key, fingerprint: createHash("sha256").update(asked).digest("hex") };
}

/** `known` is undefined when the key is ours to answer; `leftSince` tells when somebody began who did not come to an end. */
async function begin(
  { store, processes }: Idempotency,
  asked: KeyedRequest,
): Promise<{ known?: KeptAnswer | undefined; leftSince?: Date | undefined }> {
  let known = await store.begin(asked);
  let leftSince: Date | undefined;
  const isLeft =
    known !== undefined &&
    known.answer === undefined &&
    (processes.isDead(known.holder) || asked.at.getTime() - known.at.getTime() > ABANDONED_AFTER_MS);
  if (isLeft) {
    if (known?.fingerprint === asked.fingerprint) leftSince = known.at;
    known = await store.begin(asked, known);
  }
  if (known === undefined || known.fingerprint === asked.fingerprint) return { known, leftSince };
  throw new AidoError("EXECUTION_CONFLICT", "This idempotency key was used for another request");
}
