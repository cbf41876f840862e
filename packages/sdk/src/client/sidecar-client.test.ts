import { expect, test } from "vitest";
import { SidecarClient } from "./sidecar-client.ts";

interface Sent {
  url: string;
  method: string;
  token: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: a request's body is whatever the test expects it to be
  body: any;
}

/** A sidecar that answers each request with the next of the given replies. */
function sidecar(...replies: readonly (Response | object | string)[]) {
  const sent: Sent[] = [];
  const left = [...replies];
  const client = new SidecarClient({
    url: "http://sidecar.test/base/",
    token: "secret",
    fetch: async (url, init) => {
      const body = typeof init?.body === "string" ? JSON.parse(init.body) : undefined;
      const token = new Headers(init?.headers).get("authorization");
      sent.push({ url: String(url), method: init?.method ?? "GET", token, body });
      const next = left.shift();
      if (next instanceof Response) return next;
      return new Response(typeof next === "string" ? next : JSON.stringify(next ?? {}));
    },
  });
  return { client, sent };
}

test("S2-133 the address is joined with the path, and the token goes with every request", async () => {
  const { client, sent } = sidecar({ result: { exitCode: 3, stdout: "a", stderr: "b", duration: 5 } });
  const result = await client.exec({ command: "x", cwd: "", env: {}, timeoutMs: 0 });
  expect(result).toEqual({ exitCode: 3, stdout: "a", stderr: "b", durationMs: 5 });
  expect(sent).toEqual([
    {
      url: "http://sidecar.test/base/terminals/commands",
      method: "POST",
      token: "Bearer secret",
      body: { command: "x" },
    },
  ]);
});

test("S2-133 options that are given are sent", async () => {
  const { client, sent } = sidecar({});
  await client.exec({ command: "x", cwd: "sub", env: { A: "1" }, timeoutMs: 7 });
  expect(sent[0]?.body).toEqual({ command: "x", cwd: "sub", env: { A: "1" }, timeout: 7 });
});

test.each<[string, object]>([
  ["nothing at all", {}],
  ["null", { result: null }],
  ["other types", { result: { exitCode: "0", stdout: 5 } }],
])("S2-133 a command's answer with %s is exit code 0 and no text", async (_, answer) => {
  const { client } = sidecar(answer);
  expect(await client.exec({ command: "x" })).toEqual({ exitCode: 0, stdout: "", stderr: "", durationMs: 0 });
});

test("S2-25 a prompt has no turns; S2-26 a task says them twice, with the context's keys beside", async () => {
  const { client, sent } = sidecar({}, {});
  await client.runAgent({ message: "hi" });
  await client.runAgent({
    message: "do",
    identifier: "claude",
    sessionId: "s1",
    model: "m",
    maxTurns: 4,
    context: { repo: "x" },
    timeoutMs: 60_000,
  });
  expect(sent.map(({ body }) => body)).toEqual([
    { identifier: "default", message: "hi" },
    {
      identifier: "claude",
      message: "do",
      sessionId: "s1",
      backend: { model: "m" },
      metadata: { repo: "x", maxTurns: 4, maxSteps: 4 },
      timeout: 60_000,
    },
  ]);
});

test("S2-26 an agent's answer is read in either shape", async () => {
  const flat = {
    success: true,
    response: "done",
    traceId: "t",
    durationMs: 9,
    usage: { inputTokens: 1, outputTokens: 2 },
    sessionId: "s2",
  };
  const { client } = sidecar(
    flat,
    { success: true, data: { finalText: "nested", metadata: { sessionId: "s3" } } },
    { success: false, error: { message: "no backend" } },
    { success: false, error: "plain" },
  );
  expect(await client.runAgent({ message: "x" })).toEqual({ ...flat, error: undefined });
  expect(await client.runAgent({ message: "x" })).toMatchObject({ response: "nested", sessionId: "s3" });
  const failed = await client.runAgent({ message: "x", sessionId: "asked" });
  expect(failed).toMatchObject({ success: false, error: "no backend", sessionId: "asked", response: "" });
  expect(failed.usage).toEqual({ inputTokens: 0, outputTokens: 0 });
  expect(await client.runAgent({ message: "x" })).toMatchObject({ error: "plain" });
});

test.each([
  [
    401,
    "UNAUTHORIZED",
    '{"success":false,"error":{"code":"UNAUTHORIZED","message":"Missing authentication token"}}',
  ],
  [403, "FORBIDDEN", "<html>no</html>"],
  [409, "TERMINAL_CLOSED", '{"success":false,"error":{"code":"TERMINAL_CLOSED","message":"x"}}'],
  [500, "INTERNAL_SERVER_ERROR", '{"success":false,"error":{"code":"NO_BACKEND","message":"x"}}'],
  [302, "INTERNAL_SERVER_ERROR", ""],
])("S2-133 status %i is an error that has status and body in its text", async (status, code, body) => {
  const { client } = sidecar(new Response(body, { status }));
  const failure = client.exec({ command: "x" });
  await expect(failure).rejects.toMatchObject({ code, message: `HTTP ${status}: ${body}` });
});

test("S2-133 an answer that is no JSON is an error", async () => {
  const { client } = sidecar("OK");
  await expect(client.exec({ command: "x" })).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
});

test("S2-111 S2-133 an answer that does not come in time is an error, and an abort is the caller's own", async () => {
  const client = new SidecarClient({
    url: "http://sidecar.test",
    token: "secret",
    requestTimeoutMs: 10,
    fetch: (_, init) =>
      new Promise((_resolve, reject) => {
        if (init?.signal?.aborted === true) reject(init.signal.reason as Error);
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error));
      }),
  });
  await expect(client.exec({ command: "x" })).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
  const left = AbortSignal.abort(new Error("left"));
  await expect(client.exec({ command: "x", signal: left })).rejects.toThrow("left");
});

test("S2-133 health is false when the sidecar says so, and an error when there is none", async () => {
  const down = new Response('{"status":"unavailable"}', { status: 503 });
  const { client } = sidecar(
    { status: "ok" },
    { status: "starting" },
    down,
    new Response("x", { status: 404 }),
  );
  expect([await client.health(), await client.health(), await client.health()]).toEqual([true, false, false]);
  await expect(client.health()).rejects.toMatchObject({ message: "HTTP 404: x" });
});

test("a stream that breaks off is asked for again from where it was", async () => {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const { client, sent } = sidecar(
    event("output", { data: "\ufffd", offset: 0, end: 1 }),
    event("output", { data: "ü", offset: 1 }) + event("exit", { code: 0, signal: null }),
  );
  const events = [];
  for await (const one of client.stream("t 1")) events.push(one);
  expect(events).toEqual([
    { type: "output", data: "\ufffd", offset: 0 },
    { type: "output", data: "ü", offset: 1 },
    { type: "exit", code: 0, signal: undefined },
  ]);
  expect(sent.map(({ url }) => url.split("/base")[1])).toEqual([
    "/terminals/t%201/stream?offset=0",
    "/terminals/t%201/stream?offset=1",
  ]);
});
