import { describe, expect, test } from "vitest";
import { TransientSource } from "./transient-source.ts";

const ENDED = new Error("ended");
const TEXT = Array.from({ length: 500 }, (_, at) => `${at},`).join("");

/** One piece of memory for every chunk, as a file is read. */
async function* inOneMemory(sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const memory = Buffer.alloc(Math.max(...sizes));
  for (let at = 0, index = 0; at < TEXT.length; index += 1) {
    const bytes = memory.write(TEXT.slice(at, at + (sizes[index % sizes.length] ?? 1)), "latin1");
    at += bytes;
    yield memory.subarray(0, bytes);
    memory.fill("!");
  }
}

describe("bytes from chunks that are soon something else", () => {
  test.each([[[1]], [[7]], [[64, 1, 300]], [[5000]]])("chunks of %j", async (sizes) => {
    const source = new TransientSource(inOneMemory(sizes), () => ENDED);
    let taken = "";
    for (let count = 0; await source.hasMore(); count = (count + 13) % 101) {
      taken += (await source.take(Math.min(count, TEXT.length - taken.length))).toString("latin1");
    }
    expect(taken).toBe(TEXT);
    await expect(source.take(1)).rejects.toBe(ENDED);
    expect(await source.take(0)).toHaveLength(0);
  });

  test("a stream that ends within what is taken, and one that nobody reads to its end", async () => {
    const source = new TransientSource(inOneMemory([10]), () => ENDED);
    await source.take(TEXT.length - 3);
    await expect(source.take(4)).rejects.toBe(ENDED);
    let isClosed = false;
    const endless = async function* () {
      try {
        for (;;) yield new Uint8Array(8);
      } finally {
        isClosed = true;
      }
    };
    const other = new TransientSource(endless(), () => ENDED);
    await other.take(20);
    await other.close();
    expect(isClosed).toBe(true);
  });
});
