const MEBIBYTE = 1024 * 1024;
const SMALL_PART_BYTES = 8 * MEBIBYTE;
const LARGE_PART_BYTES = 64 * MEBIBYTE;
/** 8 GiB in small parts, then large ones: with S3's 10,000 parts that is room for half a tebibyte. */
const SMALL_PARTS = 1_024;

/** Parts of a body whose length nobody knows. Two are in memory at most: the one that was given out and the one being filled. */
export async function* cutIntoParts(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined, undefined> {
  let number = 0;
  let part = Buffer.allocUnsafe(SMALL_PART_BYTES);
  let filled = 0;
  for await (const chunk of body) {
    let at = 0;
    while (at < chunk.byteLength) {
      const taken = Math.min(chunk.byteLength - at, part.length - filled);
      part.set(chunk.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < part.length) continue;
      yield part;
      number += 1;
      // A part is sent again when its connection breaks, so its memory is not written to while somebody may hold it.
      part = Buffer.allocUnsafe(number < SMALL_PARTS ? SMALL_PART_BYTES : LARGE_PART_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield part.subarray(0, filled);
  return undefined;
}
