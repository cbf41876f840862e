import type { Context } from "hono";
import { networkOf } from "./client-network.ts";
import { connectionOf } from "./incoming.ts";
import { TokenBuckets } from "./rate-limiter.ts";

/** How often one address may ask for what needs no key and costs something. */
const PER_MINUTE = 600;

/** For those who have not said who they are. Raises RATE_LIMITED; remembers a bounded number of addresses. */
export class AddressLimiter {
  readonly #buckets: TokenBuckets;

  constructor(perMinute = PER_MINUTE, now?: () => number) {
    this.#buckets = new TokenBuckets(perMinute, now);
  }

  take(http: Context): void {
    const address = connectionOf(http)?.incoming.socket.remoteAddress;
    const { refusal } = this.#buckets.take(networkOf(address ?? ""));
    if (refusal !== undefined) throw refusal;
  }
}
