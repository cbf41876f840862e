import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { AidoError } from "@aido/sdk/protocol";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import type { Logger } from "../core/logger.ts";
import { answerPlainly, asksForHttp2 } from "./answer-plainly.ts";

export interface ServerOptions {
  app: Hono;
  host: string;
  port: number;
  /** Looks at each request first; true when it takes it. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
  upgrade: {
    handle: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
    close: (graceMs: number) => void;
  };
  logger: Logger;
  /** How long running requests may take to end on shutdown. */
  drainMs: number;
  /** How long a client that has its answer may go on sending what nobody reads. */
  unreadMs?: number;
}

export interface RunningServer {
  readonly url: string;
  /** Refuses new connections, waits for running requests, then cuts what is left. */
  drain(): Promise<void>;
}

/** A client that sends its headers slower than this is cut off. */
const HEADERS_TIMEOUT_MS = 15_000;
/** How long a WebSocket client may take to answer that the server leaves. */
const GOODBYE_MS = 2_000;
const SWEEP_MS = 50;
const UNREAD_MS = 30_000;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const answer = getRequestListener(options.app.fetch);
  const server = createServer((request, response) => {
    response.once("finish", () => cutIfUnread(request, options.unreadMs ?? UNREAD_MS));
    if (!options.intercept(request, response)) void answer(request, response);
  });
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  // Bodies have a limit on their pauses, where they are read: an upload may go on for as long as it takes.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 65_000;
  server.on("upgrade", (request, socket, head) => {
    if (asksForHttp2(request)) answerPlainly(server, request, socket, head);
    else options.upgrade.handle(request, socket, head);
  });
  await listen(server, options.host, options.port);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    drain: () =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), options.drainMs);
        // A connection that is kept alive becomes idle when its last reply has been sent.
        const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
        server.close(() => {
          clearTimeout(cut);
          clearInterval(sweep);
          resolve();
        });
        server.closeIdleConnections();
        options.upgrade.close(Math.min(options.drainMs, GOODBYE_MS));
      }),
  };
}

/** Not at once: a client that is cut off while it sends may never see its answer. */
function cutIfUnread(request: IncomingMessage, ms: number): void {
  if (request.complete) return;
  setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, ms).unref();
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === "EADDRINUSE";
      reject(
        new AidoError(
          "RUNTIME_UNAVAILABLE",
          `The server cannot listen on ${host}:${port}: ${cause.message}`,
          {
            cause,
            hint: taken ? "Another program uses this port; choose one with --port." : undefined,
          },
        ),
      );
    });
    server.listen(port, host, resolve);
  });
}
