import { lookup as systemLookup } from "node:dns";
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { pipeline } from "node:stream/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { privateAddress } from "../../core/object-store/destination-policy.ts";
import type { ObjectOptions } from "../../core/object-store/object-store.ts";
import { isPublicAddress } from "../../core/object-store/public-address.ts";

/** Nothing arrives and nothing can be sent: then the other side is gone. */
const SILENCE_MS = 60_000;
const MAX_TEXT_BYTES = 64 * 1024;

export interface HttpRequest extends ObjectOptions {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Raises when the connection ends before the body does. Must be read or let go with `discard`. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The beginning of a body that is meant for people. */
  text(): Promise<string>;
  discard(): void;
}

export interface HttpSenderOptions {
  /** Also to addresses that are not public. */
  readonly isTrusted: boolean;
  readonly lookup?: typeof systemLookup | undefined;
  readonly isAllowed?: ((address: string) => boolean) | undefined;
  readonly silenceMs?: number | undefined;
}

/**
 * Sends one request over one connection. Redirects are answers like any other: following one would lead past every check.
 * The address that was checked is the address that is connected to, because the check is the connection's own lookup.
 */
export class HttpSender {
  readonly #options: HttpSenderOptions;
  readonly #isAllowed: (address: string) => boolean;

  constructor(options: HttpSenderOptions) {
    this.#options = options;
    this.#isAllowed = options.isTrusted ? () => true : (options.isAllowed ?? isPublicAddress);
  }

  async send(request: HttpRequest): Promise<HttpReply> {
    const { url, method, signal, body } = request;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    // An address that is written out is connected to without a lookup.
    if (isIP(host) !== 0 && !this.#isAllowed(host)) throw privateAddress(host);
    const start = url.protocol === "https:" ? tlsRequest : plainRequest;
    const message = start(url, {
      method,
      headers: { ...request.headers },
      agent: false,
      lookup: this.#lookup,
      ...(signal === undefined ? {} : { signal }),
    });
    message.setTimeout(this.#options.silenceMs ?? SILENCE_MS, () =>
      message.destroy(new Error("the server is silent")),
    );
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      message.once("response", resolve);
      message.once("error", reject);
    });
    answered.catch(() => undefined);
    let thrownByBody: unknown;
    const isStreamed = body !== undefined && !(body instanceof Uint8Array);
    if (!isStreamed) message.end(body);
    else {
      const taken = remember(body, (thrown) => {
        thrownByBody = thrown;
      });
      // A server may answer before it has taken everything; the answer then says why.
      pipeline(taken, message).catch((thrown: unknown) => message.destroy(thrown as Error));
    }
    try {
      return new Reply(await answered);
    } catch (thrown) {
      throw thrownByBody ?? translate(thrown, url, signal);
    }
  }

  readonly #lookup: LookupFunction = (hostname, options, callback) => {
    const lookup = this.#options.lookup ?? systemLookup;
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(error, "", 0);
        return;
      }
      const refused = addresses.find(({ address }) => !this.#isAllowed(address));
      const [first] = addresses;
      if (refused !== undefined || first === undefined) {
        callback(privateAddress(refused?.address ?? hostname), "", 0);
      } else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

class Reply implements HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #message: IncomingMessage;

  constructor(message: IncomingMessage) {
    this.#message = message;
    this.status = message.statusCode ?? 0;
    this.headers = message.headers;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#message;
  }

  async text(): Promise<string> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of this.body) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (bytes > MAX_TEXT_BYTES) break;
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  discard(): void {
    this.#message.on("error", () => undefined);
    this.#message.destroy();
  }
}

async function* remember(
  body: AsyncIterable<Uint8Array>,
  onThrow: (thrown: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (thrown) {
    onThrow(thrown);
    throw thrown;
  }
}

/** What the connection raises, in the words of aido. */
export function translate(thrown: unknown, url: URL, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (isAidoError(thrown)) return thrown;
  const error = thrown as Error;
  return new AidoError("OBJECT_STORE_UNAVAILABLE", `${url.host} cannot be reached: ${error.message}`, {
    hint: "Check the address and whether the server runs, then try again.",
    details: { host: url.host },
    cause: thrown,
  });
}
