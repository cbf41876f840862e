import { AidoError } from "@aido/sdk/protocol";
import { isAllowedOrigin } from "../cors.ts";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * A server without keys trusts whoever reaches it, and any web page reaches a loopback address through its visitor's
 * browser. So a request without a key must not come from a page of another origin, nor through a name that somebody
 * else lets point here.
 */
export function refuseForeignPages(headers: Headers, allowedOrigins: readonly string[]): void {
  const host = headers.get("host");
  const origin = headers.get("origin");
  if (origin !== null && isAllowedOrigin(origin, allowedOrigins)) return;
  if (host !== null && !LOOPBACK.test(host)) {
    throw refusal(`This server has no keys and answers only as localhost, not as ${host.slice(0, 100)}`);
  }
  if (origin !== null && origin !== `http://${host}`) {
    throw refusal(`This server has no keys and does not answer pages of ${origin.slice(0, 100)}`);
  }
}

function refusal(message: string): AidoError {
  return new AidoError("FORBIDDEN", message, {
    hint: "Make a key with `aido key create`, or name the page's origin in AIDO_SERVE_CORS_ORIGINS.",
  });
}
