import { protocolError } from "./frames.ts";
import { MAX_FRAME_BYTES } from "./protocol.ts";

const HEADER_BYTES = 5;
const ID_MAX_BYTES = 64;
const TWO_32 = 4_294_967_296;

/** Builds one frame; `finish` fills in its length. */
export class FieldWriter {
  #buffer: Buffer;
  #at = HEADER_BYTES;

  constructor(type: number, sizeHint = 64) {
    this.#buffer = Buffer.allocUnsafe(HEADER_BYTES + sizeHint);
    this.#buffer[4] = type;
  }

  u8(value: number): this {
    this.#reserve(1);
    this.#at = this.#buffer.writeUInt8(value, this.#at);
    return this;
  }

  u16(value: number): this {
    this.#reserve(2);
    this.#at = this.#buffer.writeUInt16LE(value, this.#at);
    return this;
  }

  u32(value: number): this {
    this.#reserve(4);
    this.#at = this.#buffer.writeUInt32LE(value, this.#at);
    return this;
  }

  u64(value: number | bigint): this {
    if (typeof value === "bigint") {
      this.#reserve(8);
      this.#at = this.#buffer.writeBigUInt64LE(value, this.#at);
      return this;
    }
    return this.u32(value % TWO_32).u32(Math.floor(value / TWO_32));
  }

  str(value: string): this {
    const bytes = Buffer.byteLength(value);
    this.u32(bytes);
    this.#reserve(bytes);
    this.#at += this.#buffer.write(value, this.#at, "utf8");
    return this;
  }

  list(values: readonly string[]): this {
    this.u32(values.length);
    for (const value of values) this.str(value);
    return this;
  }

  bytes(data: Uint8Array): this {
    this.#reserve(data.byteLength);
    this.#buffer.set(data, this.#at);
    this.#at += data.byteLength;
    return this;
  }

  /** With room in its length for bytes that follow. */
  finish(following = 0): Buffer {
    const length = this.#at - 4 + following;
    if (length > MAX_FRAME_BYTES)
      throw new RangeError(`frame of ${length} bytes is over the protocol's limit`);
    this.#buffer.writeUInt32LE(length, 0);
    return this.#buffer.subarray(0, this.#at);
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/** Reads the fields of one body. Every read is checked against what is left; `end` refuses bytes left over. */
export class FieldReader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  get isDone(): boolean {
    return this.#at === this.#body.length;
  }

  u8(): number {
    return this.#body.readUInt8(this.#take(1));
  }

  u16(): number {
    return this.#body.readUInt16LE(this.#take(2));
  }

  u32(): number {
    return this.#body.readUInt32LE(this.#take(4));
  }

  /** For counts and sizes: what a double cannot hold exactly is refused. */
  u64(): number {
    const value = this.u32() + this.u32() * TWO_32;
    if (!Number.isSafeInteger(value)) throw protocolError("a number is too large");
    return value;
  }

  bigU64(): bigint {
    return this.#body.readBigUInt64LE(this.#take(8));
  }

  str(): string {
    const length = this.u32();
    const start = this.#take(length);
    return this.#body.toString("utf8", start, start + length);
  }

  id(): string {
    const length = this.u32();
    if (length === 0 || length > ID_MAX_BYTES) throw protocolError("an id has the wrong length");
    const start = this.#take(length);
    return this.#body.toString("latin1", start, start + length);
  }

  list(): string[] {
    const count = this.u32();
    // Each entry takes at least its length field, so a count beyond that is a lie told before any allocation.
    if (count > (this.#body.length - this.#at) / 4) throw protocolError("a list is longer than its frame");
    return Array.from({ length: count }, () => this.str());
  }

  take(length: number): Buffer {
    const start = this.#take(length);
    return this.#body.subarray(start, start + length);
  }

  rest(): Buffer {
    return this.take(this.#body.length - this.#at);
  }

  end(): void {
    if (!this.isDone) throw protocolError("a frame has bytes left over");
  }

  #take(length: number): number {
    const start = this.#at;
    if (length > this.#body.length - start) throw protocolError("a frame is too short");
    this.#at = start + length;
    return start;
  }
}
