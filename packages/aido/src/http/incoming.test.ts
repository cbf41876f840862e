import { Hono } from "hono";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { limitBodyIdle, readJson } from "./incoming.ts";

const IDLE_MS = 1_000;
const MINUTES = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A request whose body is sent piece by piece. */
function posting(idleMs = IDLE_MS) {
  let send: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      send = controller;
    },
  });
  const app = new Hono();
  app.post("/", async (http) => {
    limitBodyIdle(http, idleMs);
    return http.json(await readJson(http, 1_000_000));
  });
  const failed = new Promise<unknown>((resolve) => {
    app.onError((error, http) => {
      resolve(error);
      return http.text("failed");
    });
  });
  const reply = app.request("/", { method: "POST", body, duplex: "half" } as RequestInit);
  return {
    reply,
    failed,
    send: (text: string) => send?.enqueue(Buffer.from(text)),
    end: () => send?.close(),
  };
}

test("a body that goes on may take longer than its longest pause", async () => {
  const { reply, send, end } = posting();
  send('"');
  for (let sent = 0; sent < 20; sent += 1) {
    await vi.advanceTimersByTimeAsync(IDLE_MS - 100);
    send("x");
  }
  await vi.advanceTimersByTimeAsync(IDLE_MS - 100);
  send('"');
  end();
  expect(await (await reply).json()).toBe("x".repeat(20));
  expect(vi.getTimerCount()).toBe(0);
});

test("a body of which nothing more comes is given up", async () => {
  const { failed, send } = posting();
  send('{"half":');
  await vi.advanceTimersByTimeAsync(IDLE_MS);
  expect(await failed).toMatchObject({ code: "REQUEST_TIMEOUT" });
  expect(vi.getTimerCount()).toBe(0);
});

test("a JSON body that only trickles in is given up after ten minutes", async () => {
  const { failed, send } = posting(2 * MINUTES);
  for (let sent = 0; sent < 11; sent += 1) {
    await vi.advanceTimersByTimeAsync(MINUTES);
    send(" ");
  }
  expect(await failed).toMatchObject({ code: "REQUEST_TIMEOUT" });
});

test("without a limit nothing is counted", async () => {
  const { reply, send, end } = posting(0);
  await vi.advanceTimersByTimeAsync(9 * MINUTES);
  send("1");
  end();
  expect(await (await reply).json()).toBe(1);
});
