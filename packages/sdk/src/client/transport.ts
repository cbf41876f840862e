import { AidoError } from "../protocol/errors.ts";
import { isLost, lostServer, pause } from "./lost-server.ts";
import { errorOf } from "./server-error.ts";

export interface TransportOptions {
  url: string;
  apiKey?: string | undefined;
  fetch?: typeof fetch | undefined;
  /** Between attempts to reach the server again. */
  retryDelayMs?: number | undefined;
  /** How long a server that was reached before is waited for. */
  retryForMs?: number | undefined;
  /** How long one answer may take; what is known to be slow may take longer. */
  requestTimeoutMs?: number | undefined;
}

export interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  json?: unknown;
  body?: NonNullable<RequestInit["body"]> | undefined;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** The call may be sent again when the connection breaks: it reads, or carries an id that makes it idempotent. */
  repeatable?: boolean;
  /** Fetches images, starts or ends sandboxes, carries files. */
  slow?: boolean;
  /** How long the server was asked to wait before it answers. */
  waitMs?: number;
}

const SLOW_MS = 10 * 60_000;

/** Requests to one server, with errors that equal the server's own. */
export class Transport {
  readonly #base: string;
  readonly #options: TransportOptions;
  #wasReached = false;

  constructor(options: TransportOptions) {
    this.#base = options.url.replace(/\/+$/, "");
    this.#options = options;
  }

  get url(): string {
    return this.#base;
  }

  get retryDelayMs(): number {
    return this.#options.retryDelayMs ?? 250;
  }

  get retryForMs(): number {
    return this.#options.retryForMs ?? 30_000;
  }

  /** The whole answer. */
  async json<Reply>(path: string, call: Call = {}): Promise<Reply> {
    return this.#persist(call, () =>
      this.#within(call, async (signal) => {
        const response = await this.#reply(path, call, signal);
        try {
          return (await response.json()) as Reply;
        } catch (cause) {
          throw lostServer(this.#base, cause);
        }
      }),
    );
  }

  /** The reply once it is a good one, its body not yet read; otherwise the server's error is thrown. */
  async send(path: string, call: Call = {}): Promise<Response> {
    return this.#persist(call, () => this.#within(call, (signal) => this.#reply(path, call, signal)));
  }

  /** A server that was never reached is not waited for: its address is more likely wrong than it is away. */
  async #persist<Value>(call: Call, attempt: () => Promise<Value>): Promise<Value> {
    const deadline = Date.now() + this.retryForMs;
    for (;;) {
      try {
        return await attempt();
      } catch (thrown) {
        const again = call.repeatable === true && this.#wasReached && isLost(thrown);
        if (!again || Date.now() > deadline) throw thrown;
        await pause(this.retryDelayMs, call.signal);
      }
    }
  }

  async #within<Value>(call: Call, attempt: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const late = new AbortController();
    const limit = (call.slow === true ? SLOW_MS : 0) + (call.waitMs ?? 0) + this.#requestTimeoutMs;
    const timer = setTimeout(() => late.abort(), limit);
    const signal = call.signal === undefined ? late.signal : AbortSignal.any([call.signal, late.signal]);
    try {
      return await attempt(signal);
    } catch (thrown) {
      if (call.signal?.aborted === true) throw call.signal.reason;
      if (late.signal.aborted) throw this.#tooSlow(limit, thrown);
      throw thrown;
    } finally {
      clearTimeout(timer);
    }
  }

  async #reply(path: string, call: Call, signal: AbortSignal): Promise<Response> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers = new Headers(call.headers);
    const { apiKey } = this.#options;
    if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
    if (call.json !== undefined) headers.set("content-type", "application/json");
    const init: RequestInit & { duplex?: "half" } = { method: call.method ?? "GET", headers, signal };
    if (call.json !== undefined) init.body = JSON.stringify(call.json);
    if (call.body !== undefined) {
      init.body = call.body;
      init.duplex = "half";
    }
    const response = await this.#fetch(url, init);
    this.#wasReached = true;
    if (response.ok) return response;
    throw await errorOf(response);
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    try {
      return await (this.#options.fetch ?? fetch)(url, init);
    } catch (cause) {
      throw lostServer(this.#base, cause);
    }
  }

  get #requestTimeoutMs(): number {
    return this.#options.requestTimeoutMs ?? 30_000;
  }

  #tooSlow(limit: number, cause: unknown): AidoError {
    return new AidoError(
      "DEADLINE_EXCEEDED",
      `The server at ${this.#base} did not answer within ${limit / 1000} s`,
      { cause, hint: "It may still do what was asked. AIDO_REQUEST_TIMEOUT changes how long is waited." },
    );
  }
}
