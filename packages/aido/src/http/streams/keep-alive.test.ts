import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { keepAlive } from "./keep-alive.ts";

test("a viewer that answers stays, one that does not is cut off", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on("connection", (socket) => keepAlive(socket, 50));
  const answering = new WebSocket(url);
  const silent = new WebSocket(url, { autoPong: false });
  try {
    let pings = 0;
    answering.on("ping", () => {
      pings += 1;
    });
    const [code] = await once(silent, "close");
    expect(code).toBe(1006);
    await expect.poll(() => pings, { timeout: 10_000 }).toBeGreaterThan(3);
    expect(answering.readyState).toBe(WebSocket.OPEN);
  } finally {
    answering.terminate();
    silent.terminate();
    server.close();
  }
});

test("a viewer stays whose answer came while this process stood still", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const connected = once(server, "connection") as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const [socket] = await connected;
    let answers = 0;
    socket.on("pong", () => {
      answers += 1;
    });
    // It has answered when it tells of the ping.
    client.once("ping", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200));
    keepAlive(socket, 50);
    await expect.poll(() => answers).toBeGreaterThan(2);
    expect(socket.readyState).toBe(WebSocket.OPEN);
  } finally {
    client.terminate();
    server.close();
  }
});

test("a client that is not read from stays while it is there, and its leaving is noticed", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const connected = once(server, "connection") as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    await once(client, "open");
    const [socket] = await connected;
    let pings = 0;
    client.on("ping", () => {
      pings += 1;
    });
    socket.pause();
    keepAlive(socket, 20);
    await expect.poll(() => pings, { timeout: 10_000 }).toBeGreaterThan(3);
    expect(socket.readyState).toBe(WebSocket.OPEN);
    const closed = once(socket, "close");
    socket.on("error", () => undefined);
    client.terminate();
    await closed;
  } finally {
    client.terminate();
    server.close();
  }
});
