import { brotliCompressSync, createGzip, gzipSync } from "node:zlib";
import { afterEach, expect, test, vi } from "vitest";

const zlib = process.getBuiltinModule("node:zlib") as unknown as Record<string, unknown>;
const own = { compress: zlib["createZstdCompress"], decompress: zlib["createZstdDecompress"] };
afterEach(() => {
  setZstd(own.compress, own.decompress);
  vi.resetModules();
});

test.each([true, false])(
  "a sandbox has one object, whichever Node makes it: with zstd %s its name is the same",
  async (hasZstd) => {
    const made: string[] = [];
    const zstd = () => {
      made.push("zstd");
      return createGzip();
    };
    setZstd(hasZstd ? zstd : undefined, undefined);
    vi.resetModules();
    const { SNAPSHOT_NAME, compress } = await import("./codec.ts");
    expect(SNAPSHOT_NAME).toBe("snapshot.tar.gz");
    for await (const _ of compress(chunks(Buffer.from("x"))));
    expect(made).toEqual(hasZstd ? ["zstd"] : []);
  },
);

test("what an object is compressed with is told by its content", async () => {
  setZstd(undefined, undefined);
  vi.resetModules();
  const { decompress } = await import("./codec.ts");
  const read = async (object: Buffer) => {
    const plain: Uint8Array[] = [];
    for await (const chunk of decompress(chunks(object))) plain.push(chunk);
    return Buffer.concat(plain).toString();
  };
  expect(await read(gzipSync("files"))).toBe("files");
  const zstd = Buffer.from("28b52ffd2005290000", "hex");
  await expect(read(zstd)).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await expect(read(brotliCompressSync("files"))).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
});

function setZstd(compress: unknown, decompress: unknown): void {
  Object.defineProperties(zlib, {
    createZstdCompress: { value: compress, configurable: true, writable: true },
    createZstdDecompress: { value: decompress, configurable: true, writable: true },
  });
}

async function* chunks(...all: Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  yield* all;
}
