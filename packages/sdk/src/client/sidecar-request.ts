import { AidoError, ERROR_CODES, type ErrorCode } from "../protocol/errors.ts";
import { lostServer } from "./lost-server.ts";
import { codeOf } from "./server-error.ts";
import { object } from "./sidecar-answers.ts";

export interface SidecarOptions {
  /** As `sidecarUrl` of the sandbox has it. */
  url: string;
  token: string;
  fetch?: typeof fetch | undefined;
  /** How long one answer may take, besides what it was asked to wait. */
  requestTimeoutMs?: number | undefined;
}

export interface SidecarCall {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  json?: unknown;
  signal?: AbortSignal | undefined;
  /** How long the sidecar was asked to take. */
  waitMs?: number | undefined;
}

const REQUEST_TIMEOUT_MS = 30_000;
const SHOWN_CHARS = 2_000;

/** One request to a sidecar. Any status but a good one is an error `HTTP <status>: <body>`. */
export class SidecarRequests {
  readonly #options: SidecarOptions;
  readonly url: string;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.url = options.url.replace(/\/+$/, "");
  }

  /** Raises RUNTIME_UNAVAILABLE when the answer is no JSON. */
  async json(path: string, call: SidecarCall = {}): Promise<unknown> {
    return await this.#within(call, async (signal) => {
      const response = await this.#send(path, call, signal);
      const text = await response.text();
      try {
        return JSON.parse(text) as unknown;
      } catch (cause) {
        const shown = text.slice(0, SHOWN_CHARS);
        throw new AidoError("RUNTIME_UNAVAILABLE", `The sidecar's answer is not JSON: ${shown}`, { cause });
      }
    });
  }

  /** The reply with its body unread, for streams, which may take as long as they like. */
  async open(path: string, call: SidecarCall = {}): Promise<Response> {
    const left = new AbortController();
    const leave = () => left.abort(call.signal?.reason);
    call.signal?.addEventListener("abort", leave, { once: true });
    if (call.signal?.aborted === true) leave();
    return await this.#within({ ...call, signal: undefined }, (late) => {
      late.addEventListener("abort", () => left.abort(late.reason), { once: true });
      return this.#send(path, call, left.signal);
    });
  }

  async #send(path: string, call: SidecarCall, signal: AbortSignal): Promise<Response> {
    const headers = new Headers({ authorization: `Bearer ${this.#options.token}` });
    if (call.json !== undefined) headers.set("content-type", "application/json");
    // A redirect could lead the token elsewhere; it is not followed, and told as the answer that it is.
    const init: RequestInit = { method: call.method ?? "GET", headers, signal, redirect: "manual" };
    if (call.json !== undefined) init.body = JSON.stringify(call.json);
    let response: Response;
    try {
      response = await (this.#options.fetch ?? fetch)(this.url + path, init);
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      throw lostServer(this.url, cause);
    }
    if (response.ok) return response;
    throw await httpError(response);
  }

  async #within<Value>(call: SidecarCall, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const limitMs = (this.#options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS) + (call.waitMs ?? 0);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#tooSlow(limitMs)), limitMs);
    try {
      return await work(
        call.signal === undefined ? late.signal : AbortSignal.any([call.signal, late.signal]),
      );
    } finally {
      clearTimeout(timer);
    }
  }

  #tooSlow(limitMs: number): AidoError {
    return new AidoError("DEADLINE_EXCEEDED", `The sidecar did not answer within ${limitMs / 1000} s`, {
      hint: "It may still do what was asked. REQUEST_TIMEOUT_SECS changes how long is waited.",
    });
  }
}

async function httpError(response: Response): Promise<AidoError> {
  const body = (await response.text()).slice(0, SHOWN_CHARS);
  return new AidoError(codeIn(body) ?? codeOf(response.status), `HTTP ${response.status}: ${body}`, {
    details: { status: response.status },
  });
}

function codeIn(body: string): ErrorCode | undefined {
  try {
    const { code } = object(object(JSON.parse(body))["error"]);
    return typeof code === "string" && Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : undefined;
  } catch {
    return undefined;
  }
}
