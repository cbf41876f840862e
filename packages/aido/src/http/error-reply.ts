import { AidoError, ERROR_KINDS, type ErrorBody, toAidoError } from "@aido/sdk/protocol";
import { z } from "zod";

/** The one place where an error becomes an HTTP reply. An internal error's message stays in the log. */
export function errorReply(thrown: unknown, requestId: string): { error: AidoError; response: Response } {
  const error = wireError(thrown);
  const body = errorBody(error, requestId);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "aido-request-id": requestId,
  };
  // The rest of its body may still come, and would be taken for another request.
  if (error.code === "REQUEST_TIMEOUT") headers["connection"] = "close";
  if (error.kind === "unauthenticated") headers["www-authenticate"] = "Bearer";
  const retryAfter = error.details["retryAfterSeconds"];
  if (ERROR_KINDS[error.kind].retry || retryAfter !== undefined)
    headers["retry-after"] = String(retryAfter ?? 1);
  return { error, response: new Response(JSON.stringify(body), { status: statusOf(error), headers }) };
}

export function wireError(thrown: unknown): AidoError {
  return thrown instanceof z.ZodError ? validationError(thrown) : toAidoError(thrown);
}

/** Replies, last events of streams and messages of sockets all say it this way; `details.cause` is always there. */
export function errorBody(error: AidoError, requestId: string): ErrorBody {
  const told =
    error.code === "INTERNAL_SERVER_ERROR"
      ? new AidoError("INTERNAL_SERVER_ERROR", "The server failed to do this", {
          hint: `The server's log has the reason under request ${requestId}.`,
        })
      : error;
  const { error: body } = told.toBody(requestId);
  return { error: { ...body, details: { cause: told.message, ...body.details } } };
}

/** All problems at once, each with its place in the request. */
export function validationError(error: z.ZodError): AidoError {
  const problems = error.issues.map((issue) => {
    const place = issue.path.map(String).join(".");
    return place === "" ? issue.message : `${place}: ${issue.message}`;
  });
  const code = codeFor(error);
  return new AidoError(code, `The request is not valid: ${problems.join("; ")}`, {
    details: { cause: problems.join("; "), problems },
  });
}

function codeFor(error: z.ZodError) {
  const at = error.issues[0]?.path.map(String).join(".");
  if (at === "options.memoryLimit") return "INVALID_MEMORY_LIMIT";
  if (at === "options.cpuLimit") return "INVALID_CPU_LIMIT";
  return "VALIDATION_ERROR";
}

function statusOf(error: AidoError): number {
  if (error.code === "CONTAINER_EXPIRED") return 410;
  if (error.code === "METHOD_NOT_ALLOWED") return 405;
  if (error.code === "PAYLOAD_TOO_LARGE") return 413;
  if (error.code === "REQUEST_TIMEOUT") return 408;
  if (error.code === "PORT_UNREACHABLE") return 502;
  return error.status;
}
