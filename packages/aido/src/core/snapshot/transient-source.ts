/**
 * Exact numbers of bytes from a stream whose chunks are valid only until the next is asked for. So is what is taken until
 * the next is taken: no memory is new for each of them. `ended` is raised when the stream ends too early.
 */
export class TransientSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #ended: () => Error;
  /** What is left of the newest chunk. */
  #chunk: Buffer = Buffer.alloc(0);
  /** What is left of those before it, in memory of our own. */
  #kept: Buffer = Buffer.alloc(0);
  #keptBytes = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, ended: () => Error) {
    this.#iterator = chunks[Symbol.asyncIterator]();
    this.#ended = ended;
  }

  async take(count: number): Promise<Buffer> {
    while (this.#keptBytes + this.#chunk.length < count) {
      this.#keep(this.#chunk.length, count);
      if (!(await this.#pull())) throw this.#ended();
    }
    if (this.#keptBytes === 0) {
      const taken = this.#chunk.subarray(0, count);
      this.#chunk = this.#chunk.subarray(count);
      return taken;
    }
    this.#keep(count - this.#keptBytes, count);
    this.#keptBytes = 0;
    return this.#kept.subarray(0, count);
  }

  /** False at the end of the stream. */
  async hasMore(): Promise<boolean> {
    while (this.#keptBytes + this.#chunk.length === 0) if (!(await this.#pull())) return false;
    return true;
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  /** The chunk's first bytes; `room` is what all that is kept will need in the end. */
  #keep(bytes: number, room: number): void {
    if (this.#kept.length < room) {
      const larger = Buffer.allocUnsafeSlow(Math.max(room, 2 * this.#kept.length));
      this.#kept.copy(larger, 0, 0, this.#keptBytes);
      this.#kept = larger;
    }
    this.#keptBytes += this.#chunk.copy(this.#kept, this.#keptBytes, 0, bytes);
    this.#chunk = this.#chunk.subarray(bytes);
  }

  async #pull(): Promise<boolean> {
    const { done, value } = await this.#iterator.next();
    if (done === true) return false;
    this.#chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return true;
  }
}
