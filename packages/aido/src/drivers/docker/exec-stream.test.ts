import { duplexPair } from "node:stream";
import { buffer } from "node:stream/consumers";
import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { ExecStream } from "./exec-stream.ts";

function piece(stream: number, data: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data]);
}

test.each([1, 3, 7, 8, 9, 4096])("output arrives whole when it comes in pieces of %i bytes", async (size) => {
  const [raw, engine] = duplexPair();
  const stream = new ExecStream(raw);
  const sent = Buffer.concat([
    piece(1, Buffer.from("one ")),
    piece(1, Buffer.alloc(0)),
    piece(1, Buffer.from("two")),
  ]);
  for (let at = 0; at < sent.length; at += size) engine.write(sent.subarray(at, at + size));
  engine.end();
  expect((await buffer(stream)).toString()).toBe("one two");
});

test("what is written goes to the engine as it is, and the end too", async () => {
  const [raw, engine] = duplexPair();
  const stream = new ExecStream(raw);
  stream.write("in");
  stream.end("put");
  expect((await buffer(engine)).toString()).toBe("input");
  stream.destroy();
});

test("a slow reader makes the engine wait", async () => {
  const [raw, engine] = duplexPair();
  const stream = new ExecStream(raw);
  const chunk = piece(1, Buffer.alloc(65_536));
  let written = 0;
  while (written < 200 && engine.write(chunk)) {
    written += 1;
    await new Promise(setImmediate);
  }
  expect(written).toBeLessThan(200);
  stream.destroy();
});

test("what comes on standard error is the reason of the failure", async () => {
  const [raw, engine] = duplexPair();
  const stream = new ExecStream(raw);
  engine.end(piece(2, Buffer.from("no such\nfile \u001b[1m")));
  const failure = await buffer(stream).catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => isAidoError(error, "CONTAINER_LOST"));
  expect(failure).toMatchObject({ message: expect.stringMatching(/no such file \[1m$/) });
});
