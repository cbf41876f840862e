import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { execOutputQuery } from "@aido/sdk/schemas";
import { type WebSocket, WebSocketServer } from "ws";
import type { Authenticator } from "../auth/authenticator.ts";
import type { FailedLogins } from "../auth/failed-logins.ts";
import type { Principal } from "../auth/principal.ts";
import { errorBody, errorReply } from "../error-reply.ts";
import { ownSandbox } from "../ownership.ts";
import type { RateLimiter } from "../rate-limiter.ts";
import { type RequestReports, reportRequest } from "../report-request.ts";
import { requestIdOf } from "../request-id.ts";
import { serveExecSocket } from "./exec-socket.ts";

const EXEC_SOCKET = /^\/api\/sandbox\/([^/]+)\/exec\/([^/]+)\/ws$/;
const MAX_MESSAGE_BYTES = 1024 * 1024;
const BASE = "http://localhost";

export interface UpgradeDeps extends RequestReports {
  aido: Aido;
  authenticator: Authenticator;
  failedLogins: FailedLogins;
  rateLimiter: RateLimiter;
  isDraining: () => boolean;
  /** Other upgrades, for instance those of proxied ports; false when it is not theirs. */
  other: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>;
}

const NO_OPERATION = "none";

/** What is known of a request for a socket, more and more as it is checked. */
interface Asked {
  request: IncomingMessage;
  operation: string;
  requestId: string;
  principal: Principal | undefined;
  sandbox: string | undefined;
  started: number;
}

/** WebSocket requests: checked, counted and kept on record like any other before the protocol is switched. */
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

  const upgrade = async (asked: Asked, socket: Duplex, head: Buffer): Promise<void> => {
    const { request } = asked;
    if (deps.isDraining()) throw new AidoError("SHUTTING_DOWN", "The server is shutting down");
    const asksFor = request.url ?? "/";
    // Some paths, `//` for one, are no address at all.
    const url = new URL(URL.canParse(asksFor, BASE) ? asksFor : "/", BASE);
    const match = EXEC_SOCKET.exec(url.pathname);
    if (match === null) {
      throw new AidoError("RESOURCE_NOT_FOUND", `There is no WebSocket at ${asksFor.slice(0, 200)}`);
    }
    asked.operation = "openExecSocket";
    asked.sandbox = decoded(match[1]);
    const principal = await deps.failedLogins.watch(request.socket.remoteAddress, () =>
      deps.authenticator.authenticate(headersOf(request, url)),
    );
    asked.principal = principal;
    if (!principal.scopes.includes("write") && !principal.scopes.includes("admin"))
      throw new AidoError("FORBIDDEN", "This key may not use terminals; it needs the scope write");
    const { refusal } = deps.rateLimiter.take(principal.owner, principal.rateLimit);
    if (refusal !== undefined) throw refusal;
    const sandbox = await ownSandbox(deps.aido, principal, asked.sandbox);
    asked.sandbox = sandbox.id;
    const exec = await deps.aido.execs.get(sandbox.id, decoded(match[2]));
    url.searchParams.delete("key");
    const range = execOutputQuery.parse(Object.fromEntries(url.searchParams));
    const onSignal = async (send: () => Promise<void>): Promise<void> => {
      const signal = { ...asked, operation: "signalExec", started: performance.now() };
      try {
        const { refusal } = deps.rateLimiter.take(principal.owner, principal.rateLimit);
        if (refusal !== undefined) throw refusal;
        await send();
        report(signal, 200);
      } catch (thrown) {
        const { error, response } = errorReply(thrown, asked.requestId);
        report(signal, response.status, error);
        throw thrown;
      }
    };
    sockets.handleUpgrade(request, socket, head, (client) => {
      void serveExecSocket(client, { aido: deps.aido, exec, range, onSignal });
    });
  };

  const report = (asked: Asked, status: number, failure?: AidoError): void => {
    reportRequest(deps, {
      operation: asked.operation,
      requestId: asked.requestId,
      principal: asked.principal,
      sandbox: asked.sandbox,
      status,
      failure,
      durationMs: performance.now() - asked.started,
      audit: asked.operation === NO_OPERATION ? "none" : "all",
      isQuiet: false,
    });
  };

  const answer = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const asked: Asked = {
      request,
      operation: NO_OPERATION,
      requestId: requestIdOf(request.headers["aido-request-id"]?.toString()),
      principal: undefined,
      sandbox: undefined,
      started: performance.now(),
    };
    try {
      // Those of ports have their own access, and tell of themselves.
      if (await deps.other(request, socket, head)) return;
    } catch (thrown) {
      refuse(socket, errorReply(thrown, asked.requestId), asked.requestId);
      return;
    }
    try {
      await upgrade(asked, socket, head);
      report(asked, 101);
    } catch (thrown) {
      const reply = errorReply(thrown, asked.requestId);
      refuse(socket, reply, asked.requestId);
      report(asked, reply.response.status, reply.error);
    }
  };

  return {
    handle: (request, socket, head) => {
      socket.on("error", () => socket.destroy());
      void answer(request, socket, head);
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

function refuse(socket: Duplex, { error, response }: ReturnType<typeof errorReply>, requestId: string): void {
  const body = JSON.stringify(errorBody(error, requestId));
  const headers = [
    ...response.headers,
    ["connection", "close"],
    ["content-length", String(Buffer.byteLength(body))],
  ].map(([name, value]) => `${name}: ${value}\r\n`);
  const status = `${response.status} ${STATUS_CODES[response.status] ?? "Refused"}`;
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join("")}\r\n${body}`);
}
