import { AidoError } from "@aido/sdk/protocol";
import { decompress } from "./codec.ts";
import {
  broken,
  checkArchive,
  MAX_MANIFEST_BYTES,
  parseManifest,
  type SnapshotManifest,
} from "./manifest.ts";
import { type ArchiveInfo, TarReader } from "./tar-reader.ts";
import { ThreadedSha256 } from "./threaded-sha256.ts";

export interface UnpackOptions {
  /** Of the object, in hex; undefined when nobody knows it. */
  readonly sha256: string | undefined;
  readonly maxBytes: number;
  /** Where archives go; one that is left out is read past. */
  readonly workspace?: ((archive: AsyncIterable<Uint8Array>) => Promise<void>) | undefined;
  readonly state?: ((archive: AsyncIterable<Uint8Array>) => Promise<void>) | undefined;
}

/** Reads a whole object and resolves only when every byte of it is what was packed. Until then nothing may be relied on. */
export async function unpackSnapshot(
  object: AsyncIterable<Uint8Array>,
  options: UnpackOptions,
): Promise<SnapshotManifest> {
  // An object of which the hash is known holds what was packed; of any other only its own manifest tells.
  await using hash = options.sha256 === undefined ? undefined : new ThreadedSha256();
  const hashed = async function* () {
    for await (const chunk of object) {
      await hash?.update(chunk);
      yield chunk;
    }
  };
  const isHashed = hash === undefined;
  const plain = decompress(hashed(), { isSummed: isHashed });
  await using reader = new TarReader(limited(plain, options.maxBytes), { isHashed });
  const workspace = await deliver(reader, options.workspace);
  const state = await deliver(reader, options.state);
  const manifest = await readManifest(reader);
  await reader.end();
  if ((await hash?.digest()) !== options.sha256?.toLowerCase()) {
    throw broken("it is not the object that was taken");
  }
  checkArchive("workspace", manifest.workspace, workspace);
  checkArchive("state", manifest.state, state);
  return manifest;
}

async function deliver(
  reader: TarReader,
  to: ((archive: AsyncIterable<Uint8Array>) => Promise<void>) | undefined,
): Promise<ArchiveInfo> {
  const archive = reader.archive();
  let info: ArchiveInfo | undefined;
  let thrownByArchive: unknown;
  const whole = async function* () {
    try {
      info = yield* archive;
    } catch (thrown) {
      thrownByArchive = thrown;
      throw thrown;
    }
  };
  const stream = whole();
  try {
    if (to === undefined) await exhaust(stream);
    else await to(stream);
  } catch (thrown) {
    // What is wrong with the object says more than what the one who was to unpack it made of that.
    throw thrownByArchive ?? thrown;
  }
  if (info === undefined) await exhaust(stream);
  if (info === undefined) throw broken("an archive was not read to its end");
  return info;
}

async function exhaust(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

async function readManifest(reader: TarReader): Promise<SnapshotManifest> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of reader.archive()) {
    bytes += part.byteLength;
    if (bytes > MAX_MANIFEST_BYTES) throw broken("its manifest is too large");
    parts.push(Uint8Array.from(part));
  }
  return parseManifest(Buffer.concat(parts));
}

/** A small object can unfold to any size. */
async function* limited(
  plain: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of plain) {
    bytes += chunk.byteLength;
    if (maxBytes > 0 && bytes > maxBytes + 2 * MAX_MANIFEST_BYTES) {
      throw new AidoError("PAYLOAD_TOO_LARGE", `The snapshot holds more than ${maxBytes} bytes`, {
        hint: "Raise AIDO_SNAPSHOT_MAX_SIZE to restore it.",
      });
    }
    yield chunk;
  }
}
