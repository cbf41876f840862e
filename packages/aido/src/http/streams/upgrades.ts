import { randomUUID } from "node:crypto";
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { execOutputQuery } from "@aido/sdk/schemas";
import { type WebSocket, WebSocketServer } from "ws";
import type { Authenticator } from "../auth/authenticator.ts";
import { errorBody, errorReply } from "../error-reply.ts";
import { ownSandbox } from "../ownership.ts";
import { serveExecSocket } from "./exec-socket.ts";

const EXEC_SOCKET = /^\/api\/sandbox\/([^/]+)\/exec\/([^/]+)\/ws$/;
const MAX_MESSAGE_BYTES = 1024 * 1024;

export interface UpgradeDeps {
  aido: Aido;
  authenticator: Authenticator;
  isDraining: () => boolean;
  /** Other upgrades, for instance those of proxied ports; false when it is not theirs. */
  other: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>;
}

/** WebSocket requests: checked like any other before the protocol is switched. */
export function upgradeHandler(deps: UpgradeDeps): {
  handle: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Says goodbye; whoever does not answer within the grace is cut off. */
  close: (graceMs: number) => void;
} {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
  });

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    if (deps.isDraining()) throw new AidoError("SHUTTING_DOWN", "The server is shutting down");
    if (await deps.other(request, socket, head)) return;
    const url = new URL(request.url ?? "/", "http://localhost");
    const match = EXEC_SOCKET.exec(url.pathname);
    if (match === null) throw new AidoError("RESOURCE_NOT_FOUND", `There is no WebSocket at ${url.pathname}`);
    const principal = await deps.authenticator.authenticate(headersOf(request, url));
    if (!principal.scopes.includes("write") && !principal.scopes.includes("admin"))
      throw new AidoError("FORBIDDEN", "This key may not use terminals; it needs the scope write");
    const sandbox = await ownSandbox(deps.aido, principal, decoded(match[1]));
    const exec = await deps.aido.execs.get(sandbox.id, decoded(match[2]));
    url.searchParams.delete("key");
    const range = execOutputQuery.parse(Object.fromEntries(url.searchParams));
    sockets.handleUpgrade(request, socket, head, (client) => {
      void serveExecSocket(deps.aido, exec, client, range);
    });
  };

  return {
    handle: (request, socket, head) => {
      socket.on("error", () => socket.destroy());
      upgrade(request, socket, head).catch((thrown: unknown) => refuse(socket, thrown));
    },
    close: (graceMs) => {
      for (const client of sockets.clients) hangUp(client, graceMs);
      sockets.close();
    },
  };
}

function hangUp(client: WebSocket, graceMs: number): void {
  const cut = setTimeout(() => client.terminate(), graceMs);
  client.once("close", () => clearTimeout(cut));
  client.close(1001);
}

function decoded(part: string | undefined): string {
  try {
    return decodeURIComponent(part ?? "");
  } catch (cause) {
    throw new AidoError("VALIDATION_ERROR", "The path is not encoded correctly", { cause });
  }
}

/** Browsers cannot set headers on a WebSocket, so the key may come as `?key=`. */
function headersOf(request: IncomingMessage, url: URL): Headers {
  const headers = new Headers();
  const key = url.searchParams.get("key");
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  // Host and origin are looked at when no key is asked for: any page may open a WebSocket to any address.
  for (const name of ["authorization", "x-api-key", "host", "origin"]) {
    const value = request.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return headers;
}

function refuse(socket: Duplex, thrown: unknown): void {
  const requestId = randomUUID();
  const { error, response } = errorReply(thrown, requestId);
  const body = JSON.stringify(errorBody(error, requestId));
  socket.end(
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? "Refused"}\r\ncontent-type: application/json\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
