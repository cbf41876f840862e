import { expect, test } from "vitest";
import { AidoError } from "../protocol/errors.ts";
import type { OutputChunk } from "../protocol/index.ts";
import { HttpExecs } from "./http-execs.ts";
import { Transport } from "./transport.ts";

const base64 = (text: string): string => btoa(text);
const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const output = (stream: "stdout" | "stderr", offset: number, text: string): string =>
  event("output", { stream, offset, data: base64(text) });

/** A reply that says these parts and then ends in order, breaks, or stays open. */
function stream(parts: readonly string[], end: "close" | "break"): Response {
  const left = [...parts];
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = left.shift();
        if (part !== undefined) controller.enqueue(new TextEncoder().encode(part));
        else if (end === "close") controller.close();
        else controller.error(new TypeError("terminated"));
      },
    }),
  );
}

function execsOn(answers: readonly (Response | Error)[], retryForMs?: number) {
  const asked: URL[] = [];
  const left = [...answers];
  const fetch = async (url: URL | string | Request): Promise<Response> => {
    asked.push(new URL(String(url)));
    const answer = left.shift() ?? new TypeError("fetch failed");
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const transport = new Transport({ url: "http://aido.test", retryDelayMs: 1, retryForMs, fetch });
  return { execs: new HttpExecs(transport), asked };
}

async function collect(chunks: AsyncIterable<OutputChunk>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { stream: name, offset, data } of chunks) {
    seen.push(`${name}@${offset}:${new TextDecoder().decode(data)}`);
  }
  return seen;
}

test("a stream that breaks goes on at the next byte of each stream", async () => {
  const { execs, asked } = execsOn([
    stream([output("stdout", 0, "one\n"), output("stderr", 0, "warn\n")], "break"),
    new TypeError("fetch failed"),
    stream([output("stdout", 4, "two\n")], "close"),
    stream([": keep-alive\n\n", output("stdout", 8, "three\n"), event("end", {})], "close"),
  ]);
  expect(await collect(execs.output("box", "e1", { follow: true }))).toEqual([
    "stdout@0:one\n",
    "stderr@0:warn\n",
    "stdout@4:two\n",
    "stdout@8:three\n",
  ]);
  const offsets = asked.map(({ searchParams }) =>
    ["stdoutOffset", "stderrOffset"].map((name) => Number(searchParams.get(name))),
  );
  expect(offsets).toEqual([
    [0, 0],
    [4, 5],
    [4, 5],
    [8, 5],
  ]);
});

test("an event that is cut in two is put together again, at every place", async () => {
  const whole = output("stdout", 0, "héllo") + event("end", {});
  for (let at = 1; at < whole.length; at++) {
    const { execs } = execsOn([stream([whole.slice(0, at), whole.slice(at)], "close")]);
    expect(await collect(execs.output("box", "e1", { follow: true }))).toHaveLength(1);
  }
});

test("an error that the server tells in the stream is thrown as it is", async () => {
  const error = new AidoError("OUTPUT_LOST", "The file is gone", { hint: "Nothing can be done." });
  const { execs, asked } = execsOn([stream([event("error", error.toBody())], "close")]);
  const reading = collect(execs.output("box", "e1", { follow: true }));
  await expect(reading).rejects.toMatchObject({ code: "OUTPUT_LOST", hint: "Nothing can be done." });
  expect(asked).toHaveLength(1);
});

test("a server that takes every connection and says nothing is given up", async () => {
  const silent = Array.from({ length: 1000 }, () => stream([], "close"));
  const { execs } = execsOn(silent, 20);
  await expect(collect(execs.output("box", "e1", { follow: true }))).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
  });
});

test("leaving the loop early closes the connection", async () => {
  let closed = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode(output("stdout", 0, "x"))),
    cancel: () => {
      closed = true;
    },
  });
  const { execs } = execsOn([new Response(body)]);
  for await (const _ of execs.output("box", "e1", { follow: true })) break;
  expect(closed).toBe(true);
});

test("recorded output is read in as many answers as it takes, and a command that writes on is not followed", async () => {
  const state = { stdoutBytes: 6, stderrBytes: 0 };
  const { execs, asked } = execsOn([
    Response.json({ ...state, stdout: base64("abc"), stderr: "", truncated: true }),
    Response.json({ ...state, stdoutBytes: 100, stdout: base64("def"), stderr: "", truncated: true }),
  ]);
  expect(await collect(execs.output("box", "e1"))).toEqual(["stdout@0:abc", "stdout@3:def"]);
  expect(asked).toHaveLength(2);
});
