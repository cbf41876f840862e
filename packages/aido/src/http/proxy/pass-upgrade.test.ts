import type { IncomingMessage } from "node:http";
import { createServer as createTcp } from "node:net";
import { describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { dialTo, listen, once, proxyBed, withResolvers } from "../../../test/ports/proxy-bed.ts";

describe("a WebSocket to a port", () => {
  test("passes text and binary messages both ways, and its end", async () => {
    await using bed = await proxyBed(() => undefined);
    const sockets = new WebSocketServer({ server: bed.inside, path: "/ws" });
    const closed = withResolvers<number>();
    sockets.on("connection", (socket, request) => {
      socket.send(JSON.stringify(request.headers));
      socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
      socket.on("close", closed.resolve);
    });
    const client = new WebSocket(bed.byPath("ws").replace("http", "ws"), {
      headers: { authorization: "Bearer aido_secret" },
    });
    const greeting = String(await once(client, "message"));
    expect(greeting).not.toContain("aido_secret");
    client.send("text");
    expect(String(await once(client, "message"))).toBe("text");
    const large = Buffer.alloc(1024 * 1024, 3);
    client.send(large);
    expect(((await once(client, "message")) as Buffer).equals(large)).toBe(true);
    client.close(4001);
    expect(await closed.promise).toBe(4001);
  });

  test("that the program refuses is refused with its own answer", async () => {
    await using bed = await proxyBed(() => undefined);
    bed.inside.on("upgrade", (_, socket) => socket.end("HTTP/1.1 418 Teapot\r\nx-why: tea\r\n\r\nshort"));
    const client = new WebSocket(bed.byPath("ws").replace("http", "ws"));
    client.on("error", () => undefined);
    const reply = (await once(client, "unexpected-response", 1)) as IncomingMessage;
    expect(reply.statusCode).toBe(418);
    expect(reply.headers["x-why"]).toBe("tea");
    reply.destroy();
  });

  test("that the program answers with no status of HTTP is refused with a code", async () => {
    const answer = "HTTP/1.1 099 What\r\ncontent-length: 0\r\n\r\n";
    await using inside = await listen(createTcp((socket) => void socket.on("error", () => 0).end(answer)));
    const told = withResolvers<string | undefined>();
    await using bed = await proxyBed(() => undefined, {
      dial: async () => dialTo(inside.port),
      onReply: ({ code }) => told.resolve(code),
    });
    const client = new WebSocket(bed.byPath("ws").replace("http", "ws"));
    client.on("error", () => undefined);
    expect(await told.promise).toBe("PORT_UNREACHABLE");
    await once(client, "close");
  });

  test("is ended when the server closes", async () => {
    await using bed = await proxyBed(() => undefined);
    new WebSocketServer({ server: bed.inside });
    const client = new WebSocket(bed.byPath("").replace("http", "ws"));
    await once(client, "open");
    bed.proxy.close();
    expect(await once(client, "close")).toBe(1006);
  });
});
