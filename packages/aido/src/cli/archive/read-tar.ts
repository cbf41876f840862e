import { isUtf8 } from "node:buffer";
import { AidoError } from "@aido/sdk/protocol";
import { ByteReader } from "./byte-reader.ts";
import { TAR_BLOCK, type TarEntry } from "./tar-entry.ts";

const MOST_HEADER_BYTES = 1024 * 1024;
const TYPES: Readonly<Record<string, TarEntry["type"]>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "directory",
};

/** The entries of a ustar archive with pax headers, one at a time. Anything malformed ends it with an error. */
export async function* readTar(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(archive);
  let pax = new Map<string, Buffer>();
  try {
    for (;;) {
      const block = await reader.read(TAR_BLOCK);
      if (block.length === 0) throw broken("it ends without its end mark");
      if (block.length < TAR_BLOCK) throw broken("it ends inside a header");
      if (block.every((byte) => byte === 0)) return;
      const header = readHeader(block);
      if (header.flag === "x" || header.flag === "g") {
        const own = readPax(await readExtension(reader, header.size));
        // A global header would speak for every later entry; the supervisor never writes one.
        if (header.flag === "x") pax = own;
        continue;
      }
      const entry = withPax(header, pax);
      pax = new Map();
      const size = entry.type === "file" ? entry.size : 0;
      const body = new Body(reader, size);
      yield { ...entry, body };
      await body.skip();
      await skip(reader, padding(size));
    }
  } finally {
    await reader.close();
  }
}

interface Header extends Omit<TarEntry, "body" | "isText" | "name" | "target"> {
  flag: string;
  name: Buffer;
  target: Buffer;
}

class Body implements AsyncIterable<Uint8Array> {
  readonly #reader: ByteReader;
  #left: number;

  constructor(reader: ByteReader, size: number) {
    this.#reader = reader;
    this.#left = size;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const part of this.#reader.stream(this.#left)) {
      this.#left -= part.length;
      yield part;
    }
    if (this.#left > 0) throw broken("it ends inside a file");
  }

  async skip(): Promise<void> {
    for await (const _ of this);
  }
}

function readHeader(block: Uint8Array): Header {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.length);
  let sum = 0;
  for (const [index, byte] of bytes.entries()) sum += index >= 148 && index < 156 ? 32 : byte;
  if (sum !== number(bytes, 148, 8)) throw broken("a header's checksum is wrong");
  const hasPrefix = bytes.toString("latin1", 257, 262) === "ustar" && bytes[345] !== 0;
  const name = text(bytes, 0, 100);
  const flag = String.fromCharCode(bytes[156] ?? 0);
  return {
    flag,
    name: hasPrefix ? Buffer.concat([text(bytes, 345, 155), Buffer.from("/"), name]) : name,
    type: TYPES[flag] ?? "other",
    mode: number(bytes, 100, 8),
    size: number(bytes, 124, 12),
    modifiedAt: new Date(number(bytes, 136, 12) * 1000),
    target: text(bytes, 157, 100),
  };
}

function text(bytes: Buffer, start: number, length: number): Buffer {
  const end = bytes.indexOf(0, start);
  return bytes.subarray(start, end < 0 || end > start + length ? start + length : end);
}

function number(bytes: Buffer, start: number, length: number): number {
  const digits = bytes
    .toString("latin1", start, start + length)
    .replace(/[\0 ]+$/, "")
    .trim();
  if (!/^[0-7]*$/.test(digits)) throw broken("a header has a number that is none");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

async function readExtension(reader: ByteReader, size: number): Promise<Buffer> {
  if (size > MOST_HEADER_BYTES) throw broken("a header is too long");
  const content = await reader.read(size);
  if (content.length < size) throw broken("it ends inside a header");
  await skip(reader, padding(size));
  return Buffer.from(content);
}

function readPax(content: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(32, at);
    const digits = space < 0 ? "" : content.toString("latin1", at, space);
    const length = /^[1-9]\d{0,7}$/.test(digits) ? Number(digits) : 0;
    const end = at + length;
    const equals = content.indexOf(61, space);
    if (end > content.length || equals < 0 || equals >= end || content[end - 1] !== 10) {
      throw broken("an extended header is malformed");
    }
    records.set(content.toString("utf8", space + 1, equals), content.subarray(equals + 1, end - 1));
    at = end;
  }
  return records;
}

function withPax({ flag: _, ...header }: Header, pax: ReadonlyMap<string, Buffer>): Omit<TarEntry, "body"> {
  const size = pax.get("size")?.toString("latin1");
  const time = pax.get("mtime")?.toString("latin1");
  const name = pax.get("path") ?? header.name;
  const target = pax.get("linkpath") ?? header.target;
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw broken("a size is none");
  if (time !== undefined && !/^-?\d{1,12}(\.\d*)?$/.test(time)) throw broken("a time is none");
  return {
    ...header,
    name: name.toString("utf8"),
    target: target.toString("utf8"),
    isText: isUtf8(name) && isUtf8(target),
    size: size === undefined ? header.size : Number(size),
    modifiedAt: time === undefined ? header.modifiedAt : new Date(Number(time) * 1000),
  };
}

function padding(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

async function skip(reader: ByteReader, length: number): Promise<void> {
  for await (const _ of reader.stream(length));
}

function broken(why: string): AidoError {
  return new AidoError("FILE_DOWNLOAD_FAILED", `The archive from the sandbox is not usable: ${why}`, {
    hint: "Nothing outside the target was touched. Copy again; if it stays so, do not trust the sandbox's files.",
  });
}
