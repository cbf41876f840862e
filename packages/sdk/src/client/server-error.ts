import {
  AidoError,
  ERROR_CODES,
  type ErrorBody,
  type ErrorCode,
  type ErrorKind,
} from "../protocol/errors.ts";

const KIND_BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  429: "limit",
  501: "unsupported",
  502: "unavailable",
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
const SHOWN_CHARS = 500;

/** What a proxy in between says is no JSON of ours; its status still tells what kind of failure it is. */
export async function errorOf(response: Response): Promise<AidoError> {
  const text = await response.text();
  const body = parse(text);
  if (body !== undefined) return errorFromBody(body, response.status);
  return new AidoError(codeOf(response.status), `HTTP ${response.status}: ${text.slice(0, SHOWN_CHARS)}`);
}

/** A code this version does not know becomes the nearest one that the status implies. */
export function errorFromBody(body: ErrorBody, status: number): AidoError {
  const { code, message, hint, details, requestId } = body.error;
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : codeOf(status);
  return new AidoError(known, message, { hint, details: { ...details, ...(requestId && { requestId }) } });
}

export function codeOf(status: number): ErrorCode {
  return CODE_OF_KIND[KIND_BY_STATUS[status] ?? "internal"] ?? "INTERNAL_SERVER_ERROR";
}

function parse(text: string): ErrorBody | undefined {
  try {
    const { error } = JSON.parse(text) as Partial<ErrorBody>;
    return typeof error?.code === "string" && typeof error.message === "string" ? { error } : undefined;
  } catch {
    return undefined;
  }
}
