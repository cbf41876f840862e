import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";

const BLOCK = 512;
/** Names of up to 1 MiB and their link's target, with some room. */
const MAX_HEADER_BYTES = 4 * 1024 * 1024;
/** Headers that belong to the member after them. */
const EXTENDED = new Set(["x", "g", "L", "K"]);
/** Members that are a name only, whatever size they claim. */
const WITHOUT_CONTENT = new Set(["1", "2", "3", "4", "5", "6"]);

export interface ArchiveInfo {
  readonly entries: number;
  readonly bytes: number;
  /** In hex; undefined when it was not asked for. */
  readonly sha256: string | undefined;
}

/**
 * Archives that follow each other in one stream, each to its end mark. Nothing is gathered but the headers of long names.
 * Takes and gives chunks that are valid until the next is asked for.
 */
export class TarReader implements AsyncDisposable {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #isHashed: boolean;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>, { isHashed = true } = {}) {
    this.#source = source[Symbol.asyncIterator]();
    this.#isHashed = isHashed;
  }

  /** The next archive's bytes, end mark included; returns what went through. Must be read before the next. */
  async *archive(): AsyncGenerator<Uint8Array, ArchiveInfo, undefined> {
    const hash = this.#isHashed ? createHash("sha256") : undefined;
    let entries = 0;
    let bytes = 0;
    let zeroBlocks = 0;
    let size: number | undefined;
    /** How far the gathered bytes have been looked at, and how many after that need not be. */
    let at = 0;
    let skip = 0;
    const take = () => {
      const part = this.#rest.subarray(0, at);
      this.#rest = this.#rest.subarray(at);
      at = 0;
      bytes += part.length;
      hash?.update(part);
      return part;
    };
    while (zeroBlocks < 2 || skip > 0) {
      const step = Math.min(skip, this.#rest.length - at);
      at += step;
      skip -= step;
      const missing = skip > 0 ? 1 : BLOCK;
      if (skip === 0 && zeroBlocks === 2) break;
      if (skip > 0 || this.#rest.length - at < missing) {
        // What was looked at goes out in one piece: many small files are not many small chunks.
        yield take();
        await this.#more(missing);
        continue;
      }
      const header = readHeader(this.#rest.subarray(at, at + BLOCK));
      if (header === undefined) zeroBlocks += 1;
      else if (zeroBlocks > 0) throw noTar("a member follows the end mark");
      else if (header.type === "x") {
        if (header.size > MAX_HEADER_BYTES) throw noTar("a name is too long");
        await this.#more(at + BLOCK + padded(header.size));
        size = paxSize(this.#rest.subarray(at + BLOCK, at + BLOCK + header.size)) ?? size;
      } else if (!EXTENDED.has(header.type)) entries += 1;
      skip = BLOCK + (header === undefined ? 0 : contentBytes(header, size));
      if (header !== undefined && !EXTENDED.has(header.type)) size = undefined;
    }
    yield take();
    return { entries, bytes, sha256: hash?.digest("hex") };
  }

  /** Raises unless the stream ends here. */
  async end(): Promise<void> {
    if (this.#rest.length > 0 || (await this.#source.next()).done !== true)
      throw noTar("something follows its end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.return?.();
  }

  async #more(bytes: number): Promise<void> {
    while (this.#rest.length < bytes) {
      const rest = Buffer.from(this.#rest);
      const next = await this.#source.next();
      if (next.done === true) throw noTar("it is cut off");
      const chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
      this.#rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    }
  }
}

interface Header {
  readonly type: string;
  readonly size: number;
}

/** Undefined for a block of zeros. */
function readHeader(block: Buffer): Header | undefined {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
  if (sum === 8 * 0x20 && block[148] === 0) return undefined;
  if (octal(block.subarray(148, 156)) !== sum) throw noTar("a header is damaged");
  const type = String.fromCharCode(block[156] ?? 0);
  return { type, size: octal(block.subarray(124, 136)) };
}

function octal(field: Buffer): number {
  // GNU's way of writing what octal digits have no room for.
  if (((field[0] ?? 0) & 0x80) !== 0) return safe(Number(field.readBigUInt64BE(field.length - 8)));
  const text = field
    .toString("latin1")
    .replace(/[\0 ]+$/, "")
    .trimStart();
  if (!/^[0-7]*$/.test(text)) throw noTar("a number is damaged");
  return safe(text === "" ? 0 : Number.parseInt(text, 8));
}

/** Of records `length key=value\n`. */
function paxSize(body: Buffer): number | undefined {
  let size: number | undefined;
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const length = space === -1 ? Number.NaN : Number(body.toString("latin1", at, space));
    if (!Number.isInteger(length) || length < 5 || at + length > body.length)
      throw noTar("a long name is damaged");
    const [, value] =
      /^size=(\d+)\n$/.exec(body.toString("latin1", space + 1, Math.min(at + length, space + 64))) ?? [];
    if (value !== undefined) size = safe(Number(value));
    at += length;
  }
  return size;
}

function contentBytes({ type, size }: Header, given: number | undefined): number {
  if (WITHOUT_CONTENT.has(type)) return 0;
  return padded(EXTENDED.has(type) ? size : (given ?? size));
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

function safe(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw noTar("a size is damaged");
  return value;
}

function noTar(why: string): AidoError {
  return new AidoError("OBJECT_BROKEN", `The archive is damaged: ${why}`, {
    hint: "Restore another one; nothing was replaced.",
  });
}
