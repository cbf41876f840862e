import { expect, test } from "vitest";
import { AidoError, type ErrorCode } from "../protocol/errors.ts";
import { Transport, type TransportOptions } from "./transport.ts";

type Answer = Response | Error | ((request: Request) => Response | Promise<Response>);

/** A server that gives these answers in turn, and remembers what it was asked. */
function served(answers: readonly Answer[], options: Partial<TransportOptions> = {}) {
  const asked: Request[] = [];
  const left = [...answers];
  const fetch = async (url: URL | string | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(url, init);
    asked.push(request);
    const answer = left.shift();
    if (answer === undefined) throw new Error("the test has no more answers");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer(request) : answer;
  };
  const transport = new Transport({ url: "http://aido.test/", retryDelayMs: 1, fetch, ...options });
  return { transport, asked };
}

const broken = () => new TypeError("fetch failed");
const json = (value: unknown, status = 200) => Response.json(value, { status });

test("errors equal the server's own: code, message, hint, details", async () => {
  const error = new AidoError("CONTAINER_NOT_FOUND", "Sandbox x does not exist", {
    hint: "`aido ls` lists them.",
    details: { sandbox: "x" },
  });
  const { transport } = served([json(error.toBody("r1"), 404)]);
  const thrown = await transport.json("/api/sandbox/x").catch((each: unknown) => each);
  expect(thrown).toBeInstanceOf(AidoError);
  expect(thrown).toMatchObject({
    code: error.code,
    message: error.message,
    hint: error.hint,
    kind: "not_found",
    exitCode: 4,
    details: { sandbox: "x", requestId: "r1" },
  });
});

test.each<[number, string, ErrorCode]>([
  [404, '{"error":{"code":"FROM_THE_FUTURE","message":"gone"}}', "RESOURCE_NOT_FOUND"],
  [409, '{"error":{"code":"FROM_THE_FUTURE","message":"no"}}', "EXECUTION_CONFLICT"],
  [500, '{"error":{"code":"toString","message":"no"}}', "INTERNAL_SERVER_ERROR"],
  [502, "<html>Bad Gateway</html>", "RUNTIME_UNAVAILABLE"],
  [503, '{"unrelated":true}', "RUNTIME_UNAVAILABLE"],
  [401, "", "INVALID_API_KEY"],
])("a %i with the body %s becomes the nearest code", async (status, body, code) => {
  const { transport } = served([new Response(body, { status })]);
  await expect(transport.json("/x")).rejects.toMatchObject({ code });
});

test("the key travels in the header and in no address", async () => {
  const { transport, asked } = served([json({})], { apiKey: "aido_secret" });
  await transport.json("/x", { query: { a: "b c", gone: undefined } });
  expect(asked[0]?.headers.get("authorization")).toBe("Bearer aido_secret");
  expect(asked[0]?.url).toBe("http://aido.test/x?a=b+c");
});

test("a server that was never reached is not waited for", async () => {
  const { transport, asked } = served([broken(), json({})]);
  await expect(transport.json("/x", { repeatable: true })).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
    hint: expect.stringContaining("aido serve"),
  });
  expect(asked).toHaveLength(1);
});

test("a server that was reached is asked again, if the question may be repeated", async () => {
  const { transport, asked } = served([json({}), broken(), broken(), json({ answer: 1 })]);
  await transport.json("/x");
  expect(await transport.json("/x", { repeatable: true })).toEqual({ answer: 1 });
  expect(asked).toHaveLength(4);
});

test("a question that may not be repeated is asked once", async () => {
  const { transport, asked } = served([json({}), broken(), json({})]);
  await transport.json("/x");
  await expect(transport.json("/x", { method: "POST" })).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
  });
  expect(asked).toHaveLength(2);
});

test("an answer that breaks off is asked for again", async () => {
  const half = new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"answer":'));
        controller.error(new TypeError("terminated"));
      },
    }),
  );
  const { transport } = served([half, json({ answer: 2 })]);
  expect(await transport.json("/x", { repeatable: true })).toEqual({ answer: 2 });
});

test("a server that shuts down is waited for", async () => {
  const leaving = new AidoError("SHUTTING_DOWN", "The server is shutting down").toBody();
  const { transport } = served([json(leaving, 503), json({ answer: 3 })]);
  expect(await transport.json("/x", { repeatable: true })).toEqual({ answer: 3 });
});

test("other errors of the server are not repeated", async () => {
  const full = new AidoError("QUOTA_EXCEEDED", "You have enough").toBody();
  const { transport, asked } = served([json(full, 429), json({})]);
  await expect(transport.json("/x", { repeatable: true })).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
  expect(asked).toHaveLength(1);
});

test("waiting for a lost server ends", async () => {
  const { transport } = served([json({}), ...Array.from({ length: 1000 }, broken)], { retryForMs: 20 });
  await transport.json("/x");
  await expect(transport.json("/x", { repeatable: true })).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
  });
});

const never = (request: Request): Promise<Response> =>
  new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(request.signal.reason as Error), { once: true });
  });

test("an answer that does not come in time is an error of its own", async () => {
  const { transport } = served([never], { requestTimeoutMs: 20 });
  await expect(transport.json("/x")).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
});

test("an abort stops the waiting with the caller's reason", async () => {
  const { transport } = served([never]);
  const stop = new AbortController();
  const waiting = transport.json("/x", { signal: stop.signal });
  const reason = new Error("enough");
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});

test("a stream may take longer than one answer", async () => {
  const slow = new Response(
    new ReadableStream<Uint8Array>({
      async start(controller) {
        await new Promise((resolve) => setTimeout(resolve, 60));
        controller.enqueue(new TextEncoder().encode("late"));
        controller.close();
      },
    }),
  );
  const { transport } = served([slow], { requestTimeoutMs: 20 });
  expect(await (await transport.send("/x")).text()).toBe("late");
});
