import { createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";

export interface PublishedKey {
  key: KeyObject;
  algorithm: "RS256" | "ES256";
}

const FRESH_MS = 5 * 60_000;
const MIN_REFRESH_MS = 10_000;
const FETCH_LIMIT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;

type PublishedJwk = JsonWebKey & { kid?: string; use?: string };

/**
 * An issuer's published keys. Read again when they are old or a token names one that is not known yet, so that keys may be
 * rotated at any time; while the issuer does not answer, those known stay good.
 */
export class KeySet {
  readonly #url: string;
  readonly #fetch: typeof fetch;
  readonly #now: () => number;
  #keys = new Map<string, PublishedKey>();
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(options: { url: string; fetch: typeof fetch; now: () => number }) {
    this.#url = options.url;
    this.#fetch = options.fetch;
    this.#now = options.now;
  }

  async get(kid: string): Promise<PublishedKey | undefined> {
    const age = this.#now() - this.#askedAt;
    const isKnown = this.#keys.has(kid);
    if (this.#asking !== undefined || age > FRESH_MS || (!isKnown && age > MIN_REFRESH_MS)) {
      // One reading for all who wait: it belongs to none of their requests.
      this.#asking ??= this.#read().finally(() => {
        this.#asking = undefined;
      });
      await this.#asking.catch((thrown: unknown) => {
        if (!isKnown) throw thrown;
      });
    }
    return this.#keys.get(kid);
  }

  async #read(): Promise<void> {
    this.#askedAt = this.#now();
    try {
      const reply = await this.#fetch(this.#url, {
        signal: AbortSignal.timeout(FETCH_LIMIT_MS),
        redirect: "error",
      });
      if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
      const text = await reply.text();
      if (text.length > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
      this.#keys = parse(JSON.parse(text));
    } catch (cause) {
      throw new AidoError("RUNTIME_UNAVAILABLE", "The keys of the token's issuer cannot be read", {
        cause,
        hint: "See whether AIDO_SERVE_JWKS_URL answers.",
      });
    }
  }
}

/** Keys of other kinds, or broken ones, are of no use here but do not spoil the rest. */
function parse(document: unknown): Map<string, PublishedKey> {
  const listed = (document as { keys?: unknown } | null)?.keys;
  const keys = new Map<string, PublishedKey>();
  for (const jwk of Array.isArray(listed) ? (listed as PublishedJwk[]) : []) {
    const algorithm = algorithmOf(jwk);
    if (algorithm === undefined) continue;
    try {
      keys.set(jwk.kid ?? "", { key: createPublicKey({ key: jwk, format: "jwk" }), algorithm });
    } catch {
      // A key that cannot be used cannot be asked for.
    }
  }
  return keys;
}

function algorithmOf(jwk: PublishedJwk): PublishedKey["algorithm"] | undefined {
  if (jwk.use !== undefined && jwk.use !== "sig") return undefined;
  if (jwk.kty === "RSA") return "RS256";
  return jwk.kty === "EC" && jwk.crv === "P-256" ? "ES256" : undefined;
}
