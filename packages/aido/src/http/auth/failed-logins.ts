import { AidoError, type ErrorCode, isAidoError } from "@aido/sdk/protocol";
import { networkOf } from "../client-network.ts";
import { TokenBuckets } from "../rate-limiter.ts";

/** Of one client address. */
export const FAILURES_PER_MINUTE = 60;
const WRONG: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["INVALID_API_KEY", "FORBIDDEN"]);

/**
 * Bounds how often an address may send a wrong key or token. A right key is let in whatever else came from its address:
 * keys are too long to be guessed, and behind a proxy everybody has the same address.
 */
export class FailedLogins {
  readonly #buckets: TokenBuckets;

  constructor(perMinute = FAILURES_PER_MINUTE, now?: () => number) {
    this.#buckets = new TokenBuckets(perMinute, now);
  }

  async watch<Found>(address: string | undefined, authenticate: () => Promise<Found>): Promise<Found> {
    const place = networkOf(address ?? "");
    try {
      return await authenticate();
    } catch (thrown) {
      if (!isAidoError(thrown) || !WRONG.has(thrown.code)) throw thrown;
      throw told(this.#buckets.take(place).refusal) ?? thrown;
    }
  }

  /**
   * As `watch`, for a secret that somebody may have chosen too short: after too many wrong ones no further one is even
   * looked at. Only from this address and for this sandbox, so that nobody else is locked out.
   */
  async watchGuesses<Found>(
    address: string | undefined,
    sandboxId: string,
    authenticate: () => Promise<Found>,
  ): Promise<Found> {
    const guesses = `${networkOf(address ?? "")} ${sandboxId.slice(0, 64)}`;
    const refusal = told(this.#buckets.refusal(guesses));
    if (refusal !== undefined) throw refusal;
    return await this.watch(address, async () => {
      try {
        return await authenticate();
      } catch (thrown) {
        if (isAidoError(thrown) && WRONG.has(thrown.code)) this.#buckets.take(guesses);
        throw thrown;
      }
    });
  }
}

function told(refusal: AidoError | undefined): AidoError | undefined {
  if (refusal === undefined) return undefined;
  const { code, hint, details } = refusal;
  return new AidoError(code, "Too many wrong keys came from this address", { hint, details });
}
