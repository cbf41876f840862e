import { AidoError } from "@aido/sdk/protocol";

export interface RateLimiter {
  /** Headers for the reply; raises RATE_LIMITED when the caller asks too often. */
  take(owner: string): Record<string, string>;
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

  take(owner: string): Record<string, string> {
    if (this.#perMinute === 0) return {};
    const now = this.#now();
    const bucket = this.#buckets.get(owner) ?? { tokens: this.#perMinute, at: now };
    const perMs = this.#perMinute / (WINDOW_SECONDS * 1000);
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + (now - bucket.at) * perMs);
    bucket.at = now;
    // Deleted and set again, so that the map's order is that of last use and the oldest can go.
    this.#buckets.delete(owner);
    this.#buckets.set(owner, bucket);
    if (this.#buckets.size > MAX_BUCKETS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    if (bucket.tokens < 1) {
      const retryAfterSeconds = Math.ceil((1 - bucket.tokens) / perMs / 1000);
      throw new AidoError("RATE_LIMITED", `More than ${this.#perMinute} requests in a minute`, {
        hint: `Ask again in ${retryAfterSeconds} s.`,
        details: { retryAfterSeconds, limit: this.#perMinute },
      });
    }
    bucket.tokens -= 1;
    return {
      "ratelimit-limit": String(this.#perMinute),
      "ratelimit-remaining": String(Math.floor(bucket.tokens)),
      "ratelimit-reset": String(Math.ceil((this.#perMinute - bucket.tokens) / perMs / 1000)),
    };
  }
}
