import type { OutputChunk } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeContext } from "../testing/fake-context.ts";
import { MemorySink } from "./memory-sink.ts";
import { pumpOutput } from "./pump-output.ts";

async function* chunks(...list: [OutputChunk["stream"], number, Uint8Array | string][]) {
  for (const [stream, offset, data] of list) {
    yield { stream, offset, data: typeof data === "string" ? Buffer.from(data) : data };
  }
}

const brokenPipe = (): Promise<void> =>
  Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));

test("each stream goes to its own, byte for byte, invalid UTF-8 included", async () => {
  const context = fakeContext();
  const bytes = Uint8Array.from([0xff, 0x00, 0xc3, 0x28, 0x1b]);
  await pumpOutput(context, chunks(["stdout", 0, bytes], ["stderr", 0, "err"], ["stdout", 5, "x"]));
  expect(context.stdout.bytes).toEqual(Buffer.concat([bytes, Buffer.from("x")]));
  expect(context.stderr.text).toBe("err");
});

test("with --json a letter split between chunks stays one letter, and other bytes are base64", async () => {
  const context = fakeContext({ globals: { json: true } });
  const euro = Buffer.from("€");
  await pumpOutput(
    context,
    chunks(
      ["stdout", 0, Buffer.concat([Buffer.from("a"), euro.subarray(0, 1)])],
      ["stderr", 0, Uint8Array.from([0xff])],
      ["stdout", 2, euro.subarray(1)],
      ["stdout", 4, Uint8Array.from([0xe2])],
    ),
  );
  const events = context.stdout.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events).toEqual([
    { type: "output", stream: "stdout", offset: 0, text: "a" },
    { type: "output", stream: "stderr", offset: 0, base64: "/w==" },
    { type: "output", stream: "stdout", offset: 1, text: "€" },
    { type: "output", stream: "stdout", offset: 4, base64: "4g==" },
  ]);
});

test("when the reader of stdout is gone it is told once, quietly, and stderr goes on", async () => {
  const stdout = Object.assign(new MemorySink(), { write: brokenPipe });
  const context = fakeContext({ stdout });
  let closed = 0;
  await pumpOutput(context, chunks(["stdout", 0, "a"], ["stdout", 1, "b"], ["stderr", 0, "e"]), {
    onClosed: () => {
      closed += 1;
    },
  });
  expect(closed).toBe(1);
  expect(context.stderr.text).toBe("e");
});

test("the next chunk is asked for only when the reader has taken the one before", async () => {
  let taken: () => void = () => undefined;
  const stdout = Object.assign(new MemorySink(), {
    write: () => new Promise<void>((resolve) => (taken = resolve)),
  });
  let asked = 0;
  async function* endless() {
    for (; asked < 3; ) {
      asked += 1;
      yield { stream: "stdout" as const, offset: 0, data: Buffer.from("x") };
    }
  }
  const done = pumpOutput(fakeContext({ stdout }), endless());
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect(asked).toBe(1);
  for (let count = 0; count < 3; count += 1) {
    taken();
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  }
  await done;
  expect(asked).toBe(3);
});
