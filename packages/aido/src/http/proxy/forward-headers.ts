import type { IncomingMessage } from "node:http";
import type { PortAddress } from "./port-address.ts";

/** About one connection, not about the message. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Meant for aido: what runs in a sandbox must never see its caller's key. */
const FOR_AIDO = new Set(["authorization", "x-api-key", "expect", "host", "http2-settings"]);
/** What a browser would take as said of aido's whole origin by a page that shares it. */
const OF_THE_ORIGIN = new Set([
  "alt-svc",
  "clear-site-data",
  "nel",
  "referrer-policy",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-cookie",
  "strict-transport-security",
]);
/** Carries an authorization for the program in the sandbox, which gets it as `authorization`. */
const PASSED_AUTHORIZATION = "aido-forward-authorization";

/**
 * A page from a sandbox that shares aido's origin gets an origin of its own instead: its scripts cannot use the API
 * as whoever looks at it.
 */
const OWN_ORIGIN = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/** Name, value, name, value: as they came, so that repeated ones stay repeated. */
export type RawHeaders = string[];

export function toSandboxHeaders(request: IncomingMessage, address: PortAddress): RawHeaders {
  const dropped = droppedBy(request.headers.connection);
  const headers: RawHeaders = ["Host", `localhost:${address.port}`];
  for (const [name, value] of pairs(request.rawHeaders)) {
    const key = name.toLowerCase();
    if (dropped.has(key) || FOR_AIDO.has(key) || key.startsWith("x-forwarded-") || key === "forwarded")
      continue;
    if (key === PASSED_AUTHORIZATION) headers.push("Authorization", value);
    else if (key === "cookie") pushCookies(headers, value, address);
    else headers.push(name, value);
  }
  const isEncrypted = "encrypted" in request.socket;
  headers.push("X-Forwarded-Host", request.headers.host ?? "localhost");
  headers.push("X-Forwarded-Proto", isEncrypted ? "https" : "http");
  if (address.prefix !== "") headers.push("X-Forwarded-Prefix", address.prefix);
  // Without this a body of unknown length would have no end.
  if (request.headers["transfer-encoding"] !== undefined) headers.push("Transfer-Encoding", "chunked");
  return headers;
}

export function toClientHeaders(reply: IncomingMessage, address: PortAddress): RawHeaders {
  const dropped = droppedBy(reply.headers.connection);
  const isShared = address.prefix !== "";
  const headers: RawHeaders = [];
  for (const [name, value] of pairs(reply.rawHeaders)) {
    const key = name.toLowerCase();
    // No body follows this status, whatever its length is said to be.
    if (key === "content-length" && reply.statusCode === 204) continue;
    if (dropped.has(key) || (isShared && OF_THE_ORIGIN.has(key))) continue;
    if (key === "set-cookie") headers.push(name, ofOneHost(value));
    else headers.push(name, isShared && key === "location" ? below(value, address) : value);
  }
  if (isShared) {
    headers.push("Content-Security-Policy", OWN_ORIGIN, "Referrer-Policy", "no-referrer");
    // Its own scripts and styles come from another origin now. The address is the permission; no cookie is.
    if (reply.headers["access-control-allow-origin"] === undefined)
      headers.push("Access-Control-Allow-Origin", "*");
  }
  return headers;
}

/** A redirect stays with the port it came from. */
function below(location: string, address: PortAddress): string {
  if (location.startsWith("/") && !location.startsWith("//")) return address.prefix + location;
  const own = new RegExp(`^https?://(?:localhost|127\\.0\\.0\\.1):${address.port}(?=/|$)`, "i");
  return own.test(location) ? address.prefix + (location.replace(own, "") || "/") : location;
}

/** Other ports and aido itself have names next to this one: a cookie for all of them is none of a sandbox's business. */
function ofOneHost(cookie: string): string {
  const [pair = "", ...attributes] = cookie.split(";");
  return [pair, ...attributes.filter((attribute) => !/^\s*domain\s*=/i.test(attribute))].join(";");
}

/** Under aido's own host name every cookie may be aido's; under the port's own, only those with its name. */
function pushCookies(headers: RawHeaders, value: string, address: PortAddress): void {
  if (address.prefix !== "") return;
  const kept = value.split(";").filter((cookie) => !/^\s*(__host-|__secure-)?aido/i.test(cookie));
  if (kept.length > 0) headers.push("Cookie", kept.join(";").trim());
}

function droppedBy(connection: string | undefined): ReadonlySet<string> {
  const named = (connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  // Nobody may take away what says where a body ends.
  dropped.delete("content-length");
  return dropped;
}

function* pairs(raw: readonly string[]): Generator<[name: string, value: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) yield [raw[at] ?? "", raw[at + 1] ?? ""];
}
