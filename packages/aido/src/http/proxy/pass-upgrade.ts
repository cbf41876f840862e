import type { IncomingMessage, RequestOptions } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { AidoError } from "@aido/sdk/protocol";
import { askInside, isFinal } from "./ask-inside.ts";
import type { RawHeaders } from "./forward-headers.ts";
import { IdleTimer } from "./idle-timer.ts";

export interface UpgradeToPass {
  request: RequestOptions;
  socket: Duplex;
  /** What the client has sent already. */
  head: Buffer;
  replyHeaders: (reply: IncomingMessage) => RawHeaders;
  idleMs: number;
}

/** Asks the sandbox to switch protocols; when it does, bytes go both ways until either side ends. Gives its answer's status. */
export async function passUpgrade({
  request,
  socket,
  head,
  replyHeaders,
  idleMs,
}: UpgradeToPass): Promise<number> {
  const outgoing = askInside(request);
  const idle = new IdleTimer(idleMs, () => {
    outgoing.destroy(new AidoError("DEADLINE_EXCEEDED", "The connection was idle for too long"));
    socket.destroy();
  });
  socket.once("close", () => {
    idle.stop();
    outgoing.destroy();
  });
  return new Promise<number>((resolve, reject) => {
    outgoing.on("error", (cause) => {
      reject(cause instanceof AidoError ? cause : noAnswer(cause));
    });
    outgoing.once("upgrade", (reply, inside, first) => {
      const upgrade = ["Connection", "Upgrade", "Upgrade", reply.headers.upgrade ?? "websocket"];
      socket.write(headOf(reply, [...replyHeaders(reply), ...upgrade]));
      if (first.length > 0) socket.write(first);
      if (head.length > 0) inside.write(head);
      socket.on("data", () => idle.touch());
      inside.on("data", () => idle.touch());
      socket.pipe(inside).pipe(socket);
      socket.once("close", () => inside.destroy());
      // Not destroyed: what was said last is still on its way.
      inside.once("close", () => socket.end());
      resolve(101);
    });
    outgoing.once("close", () => reject(noAnswer(new Error("It hung up before it answered"))));
    outgoing.once("response", (reply) => {
      if (!isFinal(reply)) {
        outgoing.destroy();
        reject(noAnswer(new Error(`It answered with the status ${reply.statusCode}`)));
        return;
      }
      // It refused: its answer is the client's.
      socket.write(headOf(reply, [...replyHeaders(reply), "Connection", "close"]));
      reply.on("data", () => idle.touch());
      pipeline(reply, socket, () => socket.destroy());
      resolve(reply.statusCode ?? 502);
    });
    outgoing.end();
  });
}

function noAnswer(cause: unknown): AidoError {
  return new AidoError("PORT_UNREACHABLE", "What listens on that port gave no HTTP answer", { cause });
}

function headOf(reply: IncomingMessage, headers: RawHeaders): string {
  const lines = [`HTTP/1.1 ${reply.statusCode} ${reply.statusMessage ?? ""}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}
