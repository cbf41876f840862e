import type { AidoError, ErrorCode } from "@aido/sdk/protocol";
import { errorBody, errorReply } from "../error-reply.ts";

/** What existing clients of the sidecar API take for "there is nothing that could do this". */
const NO_BACKEND: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["AGENT_UNAVAILABLE", "AGENT_NOT_FOUND"]);

/** As `errorReply`, in the shape of the sidecar API: `{"success": false, "error": {"code", "message"}}`. */
export function sidecarErrorReply(
  thrown: unknown,
  requestId: string,
): { error: AidoError; response: Response } {
  const { error, response } = errorReply(thrown, requestId);
  const { code, message, hint } = errorBody(error, requestId).error;
  const body = {
    success: false,
    error: { code, message, ...(hint === undefined ? {} : { hint }), requestId },
  };
  const status = NO_BACKEND.has(error.code) ? 500 : response.status;
  return { error, response: new Response(JSON.stringify(body), { status, headers: response.headers }) };
}
