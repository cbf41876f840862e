import type { IncomingMessage } from "node:http";
import { TOKEN } from "../../core/ports/port-tokens.ts";

/** Which port of which sandbox a request is for, and what it asks there. */
export interface PortAddress {
  sandboxId: string;
  port: number;
  token: string;
  /** Path and query as the program in the sandbox sees them. */
  target: string;
  /** What the path begins with on the outside; empty when the port has a host name of its own. */
  prefix: string;
}

const BY_PATH = /^\/p\/([A-Za-z0-9_.-]{1,63})\/(\d{1,5})\/([a-z2-7]{26})(?=[/?]|$)/;
const BY_HOST = /^(\d{1,5})-([a-z0-9-]{1,30})-([a-z2-7]{26})\./i;
/** A label of a host name has at most 63 characters, of one case, without dots. */
const FITS_HOST = /^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/;

export function readPortAddress(request: Pick<IncomingMessage, "url" | "headers">): PortAddress | undefined {
  const url = request.url ?? "";
  const host = BY_HOST.exec(request.headers.host ?? "");
  if (host !== null && url.startsWith("/")) {
    const [, port = "", sandboxId = "", token = ""] = host;
    return {
      sandboxId: sandboxId.toLowerCase(),
      port: Number(port),
      token: token.toLowerCase(),
      target: url,
      prefix: "",
    };
  }
  const path = BY_PATH.exec(url);
  if (path === null) return undefined;
  const [prefix, sandboxId = "", port = "", token = ""] = path;
  return { sandboxId, port: Number(port), token, target: url.slice(prefix.length), prefix };
}

export function portPath(sandboxId: string, port: number, token: string): string {
  return `/p/${sandboxId}/${port}/${token}/`;
}

/** Undefined when the sandbox's id cannot be part of a host name. */
export function portHost(
  sandboxId: string,
  port: number,
  token: string,
  serverHost: string,
): string | undefined {
  if (!FITS_HOST.test(sandboxId) || !TOKEN.test(token)) return undefined;
  return `${port}-${sandboxId}-${token}.${baseHost(serverHost)}`;
}

/** Names below `localhost` lead to loopback without any entry in the DNS; an address has no names below it. */
function baseHost(serverHost: string): string {
  const [, name = "", port = ""] = /^(\[[^\]]*\]|[^:]*)(:\d+)?$/.exec(serverHost) ?? [];
  const isAddress = name.startsWith("[") || /^[\d.]+$/.test(name) || name === "";
  return `${isAddress ? "localhost" : name.toLowerCase()}${port}`;
}
