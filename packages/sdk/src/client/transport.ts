import {
  AidoError,
  ERROR_CODES,
  type ErrorBody,
  type ErrorCode,
  type ErrorKind,
} from "../protocol/errors.ts";

export interface TransportOptions {
  url: string;
  apiKey?: string | undefined;
  fetch?: typeof fetch | undefined;
  /** Between attempts to reach the server again. */
  retryDelayMs?: number | undefined;
  /** How long a lost server is waited for. */
  retryForMs?: number | undefined;
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
}

/** Requests to one server, with errors that equal the server's own. */
export class Transport {
  readonly #base: string;
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#base = options.url.replace(/\/+$/, "");
    this.#options = options;
  }

  get retryDelayMs(): number {
    return this.#options.retryDelayMs ?? 250;
  }

  get retryForMs(): number {
    return this.#options.retryForMs ?? 30_000;
  }

  async json<Reply>(path: string, call: Call = {}): Promise<Reply> {
    const response = await this.send(path, call);
    return (await response.json()) as Reply;
  }

  /** The reply once it is a good one; otherwise the server's error is thrown. */
  async send(path: string, call: Call = {}): Promise<Response> {
    const deadline = Date.now() + this.retryForMs;
    for (;;) {
      try {
        return await this.#once(path, call);
      } catch (thrown) {
        const lost =
          thrown instanceof AidoError &&
          thrown.code === "RUNTIME_UNAVAILABLE" &&
          thrown.details["connection"];
        if (call.repeatable !== true || lost !== true || Date.now() > deadline) throw thrown;
        await pause(this.retryDelayMs, call.signal);
      }
    }
  }

  async #once(path: string, call: Call): Promise<Response> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers = new Headers(call.headers);
    if (this.#options.apiKey !== undefined) headers.set("authorization", `Bearer ${this.#options.apiKey}`);
    if (call.json !== undefined) headers.set("content-type", "application/json");
    const init: RequestInit & { duplex?: "half" } = { method: call.method ?? "GET", headers };
    if (call.json !== undefined) init.body = JSON.stringify(call.json);
    if (call.body !== undefined) {
      init.body = call.body;
      init.duplex = "half";
    }
    if (call.signal !== undefined) init.signal = call.signal;
    const response = await this.#fetch(url, init);
    if (response.ok) return response;
    throw await errorOf(response);
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    try {
      return await (this.#options.fetch ?? fetch)(url, init);
    } catch (cause) {
      if (init.signal?.aborted === true) throw cause;
      throw new AidoError("RUNTIME_UNAVAILABLE", `The server at ${this.#base} does not answer`, {
        cause,
        hint: "Is `aido serve` running there? AIDO_URL and --server name the server.",
        details: { connection: true },
      });
    }
  }
}

const KIND_BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  429: "limit",
  501: "unsupported",
  503: "unavailable",
  504: "timeout",
};
const CODE_OF_KIND: Partial<Record<ErrorKind, ErrorCode>> = {
  invalid: "VALIDATION_ERROR",
  unauthenticated: "INVALID_API_KEY",
  forbidden: "FORBIDDEN",
  not_found: "RESOURCE_NOT_FOUND",
  conflict: "EXECUTION_CONFLICT",
  limit: "RATE_LIMITED",
  unsupported: "UNSUPPORTED",
  unavailable: "RUNTIME_UNAVAILABLE",
  timeout: "DEADLINE_EXCEEDED",
};

async function errorOf(response: Response): Promise<AidoError> {
  const text = await response.text();
  try {
    return errorFromBody(JSON.parse(text) as ErrorBody, response.status);
  } catch {
    return new AidoError("INTERNAL_SERVER_ERROR", `HTTP ${response.status}: ${text.slice(0, 500)}`);
  }
}

/** A code this version does not know becomes the nearest one that the status implies. */
export function errorFromBody(body: ErrorBody, status: number): AidoError {
  const { code, message, hint, details, requestId } = body.error;
  const known = Object.hasOwn(ERROR_CODES, code)
    ? (code as ErrorCode)
    : (CODE_OF_KIND[KIND_BY_STATUS[status] ?? "internal"] ?? "INTERNAL_SERVER_ERROR");
  return new AidoError(known, message, { hint, details: { ...details, ...(requestId && { requestId }) } });
}

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", aborted, { once: true });
    function done() {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }
    function aborted() {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    }
  });
}
