import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { RequestContext } from "../request-context.ts";
import { eventStream, type ServerEvent } from "./event-stream.ts";
import { firstChunkThenStream } from "./first-chunk.ts";

describe("server-sent events", () => {
  test("a connection on which nothing happens is kept alive", async () => {
    const { request, leave } = asker();
    const response = eventStream(silent, request, 5);
    const text = await readUntil(response, (seen) => (seen.match(/: keep-alive\n\n/g) ?? []).length >= 3);
    expect(text.startsWith(": connected\n\n")).toBe(true);
    leave.abort();
  });

  test("a viewer that leaves stops what makes the events", async () => {
    const { request } = asker();
    let isStopped = false;
    const source = async function* (signal: AbortSignal): AsyncGenerator<ServerEvent> {
      try {
        yield { event: "first", data: 1 };
        await aborted(signal);
      } finally {
        isStopped = true;
      }
    };
    const reader = eventStream(source, request).body?.getReader();
    await reader?.read();
    await reader?.read();
    await reader?.cancel();
    await expect.poll(() => isStopped).toBe(true);
  });

  test("a server that shuts down ends the stream without an end event", async () => {
    const { request, draining } = asker();
    const response = eventStream(silent, request);
    draining.abort();
    expect(await response.text()).toBe(": connected\n\n");
  });

  test("what fails later is the last event, an unforeseen reason excepted", async () => {
    const { request } = asker();
    const failing = (error: Error) =>
      async function* (): AsyncGenerator<ServerEvent> {
        yield { event: "first", data: 1, id: "7" };
        throw error;
      };
    const known = await eventStream(failing(new AidoError("OUTPUT_LOST", "gone")), request).text();
    expect(known).toContain(
      'id: 7\nevent: first\ndata: 1\n\nevent: error\ndata: {"error":{"code":"OUTPUT_LOST"',
    );
    const unknown = await eventStream(failing(new Error("at 10.0.0.7")), request).text();
    expect(unknown).toContain("INTERNAL_SERVER_ERROR");
    expect(unknown).not.toContain("10.0.0.7");
  });

  test("events are made only as fast as they are read", async () => {
    const { request, leave } = asker();
    let made = 0;
    const endless = async function* (): AsyncGenerator<ServerEvent> {
      for (;;) yield { event: "n", data: made++ };
    };
    const reader = eventStream(endless, request).body?.getReader();
    for (let at = 0; at < 20; at += 1) await reader?.read();
    expect(made).toBeLessThan(30);
    leave.abort();
    await reader?.cancel();
  });
});

describe("streamed bodies", () => {
  test("what fails before the first byte is raised, later it breaks the body", async () => {
    const none = async function* (): AsyncGenerator<Uint8Array> {
      yield* [];
      throw new AidoError("FILE_NOT_FOUND", "none");
    };
    await expect(firstChunkThenStream(none)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    const half = async function* (): AsyncGenerator<Uint8Array> {
      yield new Uint8Array([1]);
      throw new Error("broken");
    };
    const body = await firstChunkThenStream(half);
    await expect(new Response(body).arrayBuffer()).rejects.toThrow("broken");
  });
});

function asker() {
  const [leave, draining] = [new AbortController(), new AbortController()];
  const ignore = () => undefined;
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => logger };
  const request: RequestContext = {
    requestId: "r",
    principal: { owner: "o", name: "o", scopes: [] },
    signal: leave.signal,
    draining: draining.signal,
    logger,
  };
  return { request, leave, draining };
}

async function* silent(signal: AbortSignal): AsyncGenerator<ServerEvent> {
  yield* [];
  await aborted(signal);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function readUntil(response: Response, isEnough: (seen: string) => boolean): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let seen = "";
  while (!isEnough(seen)) seen += decoder.decode((await reader?.read())?.value);
  await reader?.cancel();
  return seen;
}
