import type { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { AidoError } from "@aido/sdk/protocol";
import { beginsMembers, packMembers, unpackMembers } from "./gzip-members.ts";

/** Enough to tell everything apart. */
const HEAD_BYTES = 16;
const CHUNK_BYTES = 256 * 1024;
const GZIP_MAGIC = 0x1f8b;
const ZSTD_MAGIC = 0x28b52ffd;

interface ZstdLibrary {
  createZstdCompress?: (options?: object) => Transform;
  createZstdDecompress?: (options?: object) => Transform;
}

/** zstd where this Node has it: several times faster at the same size. */
const zstd = process.getBuiltinModule("node:zlib") as unknown as ZstdLibrary;

/** Whatever it is compressed with: under another name the object of another Node would be left behind. */
export const SNAPSHOT_NAME = "snapshot.tar.gz";

export function compress(plain: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const transform = zstd.createZstdCompress?.({ chunkSize: CHUNK_BYTES });
  return transform === undefined ? packMembers(plain) : through(plain, transform);
}

/**
 * By what it begins with, never by its name: an object may come from a machine with another Node. Takes and gives chunks
 * that are valid until the next is asked for. Whoever has a hash of the whole need not have checksums looked at.
 */
export async function* decompress(
  packed: AsyncIterable<Uint8Array>,
  { isSummed = true } = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = packed[Symbol.asyncIterator]();
  try {
    let head = Buffer.alloc(0);
    while (head.length < HEAD_BYTES) {
      const next = await source.next();
      if (next.done === true) break;
      head = Buffer.concat([head, next.value]);
    }
    if (head.length < 4) throw noSnapshot();
    const whole = async function* () {
      yield head;
      for (let next = await source.next(); next.done !== true; next = await source.next()) yield next.value;
    };
    if (beginsMembers(head)) yield* unpackMembers(whole(), { damaged: noSnapshot, isSummed });
    else yield* through(copies(whole()), decompressor(head));
  } catch (thrown) {
    throw isZlibError(thrown) ? noSnapshot(thrown) : thrown;
  } finally {
    await source.return?.();
  }
}

function decompressor(head: Buffer): Transform {
  if (head.readUInt16BE(0) === GZIP_MAGIC) return createGunzip({ chunkSize: CHUNK_BYTES });
  if (head.readUInt32BE(0) !== ZSTD_MAGIC) throw noSnapshot();
  if (zstd.createZstdDecompress !== undefined) return zstd.createZstdDecompress({ chunkSize: CHUNK_BYTES });
  throw new AidoError(
    "UNSUPPORTED",
    `The snapshot is compressed with zstd, which Node ${process.version} lacks`,
    {
      hint: "Run aido with Node 22.15 or newer to restore it.",
    },
  );
}

/** A transform holds what it is given longer than until it asks for more. */
async function* copies(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) yield Uint8Array.from(chunk);
}

/** Takes from the source only what the reader takes; a failure of either ends both. */
async function* through(
  source: AsyncIterable<Uint8Array>,
  transform: Transform,
): AsyncGenerator<Uint8Array, void, undefined> {
  const fed = pipeline(source, transform).catch((thrown: unknown) => {
    transform.destroy(thrown as Error);
  });
  try {
    for await (const chunk of transform) yield chunk as Uint8Array;
  } finally {
    transform.destroy();
    await fed;
  }
}

function isZlibError(thrown: unknown): boolean {
  const { code } = thrown as { code?: unknown };
  return typeof code === "string" && /^(Z_|ZSTD_|ERR_ZSTD|ERR_ZLIB)/.test(code);
}

function noSnapshot(cause?: unknown): AidoError {
  return new AidoError("OBJECT_BROKEN", "The object is no snapshot, or a damaged one", {
    hint: "Restore another one; nothing was replaced.",
    cause,
  });
}
