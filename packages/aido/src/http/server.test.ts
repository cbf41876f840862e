import { once } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { expect, test } from "vitest";
import { StreamLogger } from "../log/stream-logger.ts";
import { startServer } from "./server.ts";

async function serve(unreadMs: number) {
  const app = new Hono();
  app.all("/", (http) => http.text("answered"));
  const server = await startServer({
    ...{ app, host: "127.0.0.1", port: 0, drainMs: 100, unreadMs },
    intercept: () => false,
    upgrade: { handle: (_, socket) => socket.destroy(), close: () => undefined },
    logger: new StreamLogger({
      level: "error",
      format: "json",
      write: () => undefined,
      now: () => new Date(),
    }),
  });
  return { port: Number(new URL(server.url).port), [Symbol.asyncDispose]: () => server.drain() };
}

const HALF = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf";

test("a client that has its answer and never ends what nobody reads is cut off", async () => {
  await using server = await serve(10);
  const socket = connect(server.port, "127.0.0.1");
  socket.write(HALF);
  expect(String((await once(socket, "data"))[0])).toContain("answered");
  await once(socket, "close");
});

test("one that ends it keeps its connection", async () => {
  await using server = await serve(60_000);
  const socket = connect(server.port, "127.0.0.1");
  for (let at = 0; at < 2; at += 1) {
    socket.write(HALF);
    expect(String((await once(socket, "data"))[0])).toContain("answered");
    socket.write("whole!");
  }
  socket.destroy();
});
