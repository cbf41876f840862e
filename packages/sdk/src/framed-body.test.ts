import { expect, test } from "vitest";
import { FramedBody, writeFramedBody } from "./framed-body.ts";
import type { RunFile } from "./runs.ts";

const file = (path: string, ...chunks: Uint8Array[]): RunFile => ({
  path,
  async *content() {
    yield* chunks;
  },
});
const bytes = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + seed) & 255);

async function join(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: number[] = [];
  for await (const part of parts) for (const byte of part) all.push(byte);
  return Uint8Array.from(all);
}

/** The same bytes in pieces of another size: a network cuts where it likes. */
async function* inPiecesOf(size: number, whole: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size);
}

test.each([1, 3, 7, 4096, 10_000_000])(
  "a request and its files arrive in pieces of %i bytes",
  async (size) => {
    const big = bytes(300_001, 1);
    const files = [file("a", bytes(5, 2), bytes(0, 0), bytes(9, 3)), file("empty"), file("big", big)];
    const whole = await join(writeFramedBody({ hello: "wörld" }, files));
    const body = new FramedBody(inPiecesOf(size, whole));
    expect(await body.request(1000)).toEqual({ hello: "wörld" });
    expect(await join(body.file())).toEqual(Uint8Array.from([...bytes(5, 2), ...bytes(9, 3)]));
    expect(await join(body.file())).toEqual(new Uint8Array(0));
    expect(await join(body.file())).toEqual(big);
  },
);

test("a body that breaks off anywhere is refused, never a shorter file", async () => {
  const whole = await join(writeFramedBody({}, [file("a", bytes(20, 0))]));
  for (let length = 0; length < whole.length; length++) {
    const body = new FramedBody(inPiecesOf(8, whole.subarray(0, length)));
    const read = async () => {
      await body.request(1000);
      await join(body.file());
    };
    await expect(read(), `after ${length} bytes`).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  }
});

test("a length beyond the limit is refused before anything is kept", async () => {
  const huge = new FramedBody(inPiecesOf(4, Uint8Array.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3])));
  await expect(huge.request(1000)).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  const start = await join(writeFramedBody({}, []));
  const body = new FramedBody(inPiecesOf(4, Uint8Array.from([...start, 0x7f, 0, 0, 0, 1])));
  await body.request(1000);
  await expect(join(body.file())).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
});

test("what is no JSON is refused", async () => {
  const body = new FramedBody(inPiecesOf(4, Uint8Array.from([0, 0, 0, 1, 0x7b])));
  await expect(body.request(1000)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
});
