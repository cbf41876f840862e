import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** Some clients ask for HTTP/2 along with every first request, and take an answer in HTTP/1.1 for a no. */
export function asksForHttp2({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "h2c";
}

/** Gives the connection back to the server, with its request as it would be without the question. */
export function answerPlainly(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (/^(connection|upgrade|http2-settings)$/i.test(rawHeaders[at] ?? "")) continue;
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  // As Node has read it: a letter a byte.
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}
