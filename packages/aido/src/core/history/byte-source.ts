/** Exact numbers of bytes from a stream of chunks. `ended` is raised when the stream ends too early. */
export class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #ended: () => Error;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, ended: () => Error) {
    this.#iterator = chunks[Symbol.asyncIterator]();
    this.#ended = ended;
  }

  async take(count: number): Promise<Buffer> {
    while (this.#length < count) await this.#pull();
    this.#length -= count;
    const [first] = this.#parts;
    if (first !== undefined && first.length >= count) {
      this.#parts[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    // Of the last part only what is asked for is copied.
    const taken = Buffer.allocUnsafe(count);
    for (let at = 0; at < count; ) {
      const part = this.#parts.shift() ?? Buffer.alloc(0);
      const copied = part.copy(taken, at);
      at += copied;
      if (copied < part.length) this.#parts.unshift(part.subarray(copied));
    }
    return taken;
  }

  /** False at the end of the stream. */
  async hasMore(): Promise<boolean> {
    while (this.#length === 0) if (!(await this.#mayPull())) return false;
    return true;
  }

  async skip(count: number): Promise<void> {
    let left = count;
    while (left > 0) {
      if (this.#length === 0) await this.#pull();
      const part = await this.take(Math.min(left, this.#length));
      left -= part.length;
    }
  }

  /** Up to the next newline, which is taken but not given. */
  async line(maxBytes: number): Promise<string> {
    for (;;) {
      const whole = this.#whole();
      this.#parts = [whole];
      const at = whole.indexOf(10);
      if (at >= 0) return (await this.take(at + 1)).toString("latin1", 0, at);
      if (whole.length > maxBytes) throw this.#ended();
      await this.#pull();
    }
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  #whole(): Buffer {
    return this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts);
  }

  async #pull(): Promise<void> {
    if (!(await this.#mayPull())) throw this.#ended();
  }

  async #mayPull(): Promise<boolean> {
    const { done, value } = await this.#iterator.next();
    if (done === true) return false;
    this.#parts.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    this.#length += value.length;
    return true;
  }
}
