import { createHash } from "node:crypto";
import type { StoredObject } from "../../core/object-store/object-store.ts";

/** Tells what has gone through: its size and hash. */
export class HashedBody {
  readonly #hash = createHash("sha256");
  #bytes = 0;

  async *pass(
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    signal?.throwIfAborted();
    for await (const chunk of body) {
      signal?.throwIfAborted();
      if (chunk.byteLength === 0) continue;
      this.#hash.update(chunk);
      this.#bytes += chunk.byteLength;
      yield chunk;
    }
    signal?.throwIfAborted();
  }

  /** Once, after the last chunk. */
  end(): StoredObject {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}
