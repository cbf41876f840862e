import { AidoError } from "@aido/sdk/protocol";

export interface RateLimiter {
  /** `perMinute` where the caller has a limit of its own. */
  take(owner: string, perMinute?: number): Taken;
}

export interface Taken {
  /** For the reply, also for one that refuses. */
  headers: Readonly<Record<string, string>>;
  /** RATE_LIMITED when the caller asks too often. */
  refusal: AidoError | undefined;
}

interface Bucket {
  tokens: number;
  at: number;
}

const WINDOW_SECONDS = 60;
const MAX_BUCKETS = 10_000;

/** A bucket per owner that fills evenly, so a burst up to the whole minute's share is fine. */
export class TokenBuckets implements RateLimiter {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  /** 0 means no limit. */
  constructor(perMinute: number, now: () => number = () => Date.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  take(owner: string, perMinute = this.#perMinute): Taken {
    if (perMinute === 0) return { headers: {}, refusal: undefined };
    const bucket = this.#filled(owner, perMinute);
    // Deleted and set again, so that the map's order is that of last use and the oldest can go.
    this.#buckets.delete(owner);
    this.#buckets.set(owner, bucket);
    if (this.#buckets.size > MAX_BUCKETS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const refusal = refusalOf(bucket, perMinute);
    if (refusal === undefined) bucket.tokens -= 1;
    const headers = {
      "ratelimit-limit": String(perMinute),
      "ratelimit-remaining": String(Math.floor(bucket.tokens)),
      "ratelimit-reset": String(secondsUntil(perMinute - bucket.tokens, perMinute)),
    };
    return { headers, refusal };
  }

  /** What taking would be refused with; takes nothing. */
  refusal(owner: string): AidoError | undefined {
    if (this.#perMinute === 0) return undefined;
    return refusalOf(this.#filled(owner, this.#perMinute), this.#perMinute);
  }

  #filled(owner: string, perMinute: number): Bucket {
    const now = this.#now();
    const { tokens, at } = this.#buckets.get(owner) ?? { tokens: perMinute, at: now };
    const fresh = ((now - at) * perMinute) / (WINDOW_SECONDS * 1000);
    return { tokens: Math.min(perMinute, tokens + fresh), at: now };
  }
}

function refusalOf({ tokens }: Bucket, perMinute: number): AidoError | undefined {
  if (tokens >= 1) return undefined;
  const retryAfterSeconds = secondsUntil(1 - tokens, perMinute);
  return new AidoError("RATE_LIMITED", `More than ${perMinute} requests in a minute`, {
    hint: `Ask again in ${retryAfterSeconds} s.`,
    details: { retryAfterSeconds, limit: perMinute },
  });
}

function secondsUntil(tokens: number, perMinute: number): number {
  return Math.ceil((tokens * WINDOW_SECONDS) / perMinute);
}
