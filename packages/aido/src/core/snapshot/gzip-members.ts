import { promisify } from "node:util";
import { crc32, deflateRaw, inflateRaw } from "node:zlib";
import { TransientSource } from "./transient-source.ts";

/** A stored block of deflate has up to so many bytes. */
const STORED_BYTES = 65_535;
const STORED_HEAD_BYTES = 5;
/** Of plain bytes in one member. */
export const MEMBER_BYTES = 4 * STORED_BYTES;
/** gzip, deflate, with one extra field: `AI`, four bytes that say how many the compressed ones are. */
const HEAD = Buffer.from("1f8b08040000000004ff080041490400", "hex");
const HEAD_BYTES = HEAD.length + 4;
const TAIL_BYTES = 8;
/** Of the threads that libuv has for everything. */
const AT_ONCE = 3;
const LEVEL = 1;
/** From fewer bytes a count of each value says little. */
const LEAST_SAMPLES = 2048;
/** Odd, so that it meets all columns of a table. */
const SAMPLE_EVERY = 61;
/** Of the squares of those counts, against what random bytes have. */
const RANDOM_UP_TO = 1.1;

const deflateInThread = promisify<Buffer, object, Buffer>(deflateRaw);
const inflateInThread = promisify<Buffer, object, Buffer>(inflateRaw);

type Pieces = readonly Uint8Array[];

/**
 * A gzip of many members, which any `gzip -d` reads. Each stands for itself and says how long it is, so that several are
 * worked on at once; what would not become smaller is kept as it is, which costs next to nothing in either direction.
 */
export async function* packMembers(
  plain: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* inOrder(blocksOf(plain), pack);
}

/** Whether an object that begins with these bytes was made by `packMembers`. */
export function beginsMembers(head: Buffer): boolean {
  return head.length >= HEAD.length && head.compare(HEAD, 0, HEAD.length, 0, HEAD.length) === 0;
}

/** Takes and gives chunks that are valid until the next is asked for. */
export async function* unpackMembers(
  packed: AsyncIterable<Uint8Array>,
  options: UnpackMembers,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* inOrder(membersOf(packed, options), (member) => unpack(member, options));
}

/** What takes long is begun while what comes before it is taken; what is there at once is memory that will be used again. */
async function* inOrder<T>(
  items: AsyncIterable<T>,
  work: (item: T) => Pieces | Promise<Pieces>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const begun: Promise<Pieces>[] = [];
  for await (const item of items) {
    const pieces = work(item);
    if (pieces instanceof Promise) {
      // Heard of when it is its turn, if it comes to that.
      pieces.catch(() => undefined);
      begun.push(pieces);
      if (begun.length >= AT_ONCE) yield* (await begun.shift()) ?? [];
    } else {
      for (const earlier of begun.splice(0)) yield* await earlier;
      yield* pieces;
    }
  }
  for (const pieces of begun) yield* await pieces;
}

/** Each in the same memory as the one before it. */
async function* blocksOf(plain: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  const block = Buffer.allocUnsafe(MEMBER_BYTES);
  let used = 0;
  let isAny = false;
  for await (const chunk of plain) {
    for (let at = 0; at < chunk.byteLength; ) {
      const part = chunk.subarray(at, at + MEMBER_BYTES - used);
      block.set(part, used);
      used += part.byteLength;
      at += part.byteLength;
      if (used < MEMBER_BYTES) continue;
      yield block;
      isAny = true;
      used = 0;
    }
  }
  if (used > 0 || !isAny) yield block.subarray(0, used);
}

function pack(plain: Buffer): Pieces | Promise<Pieces> {
  if (isLikeRandom(plain)) return member(plain, stored(plain));
  const own = Buffer.from(plain);
  return deflateInThread(own, { level: LEVEL, memLevel: 9 }).then((deflated) =>
    member(own, deflated.length < own.length ? [deflated] : stored(own)),
  );
}

function member(plain: Buffer, packed: Pieces): Pieces {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  HEAD.copy(head);
  head.writeUInt32LE(
    packed.reduce((bytes, piece) => bytes + piece.byteLength, 0),
    HEAD.length,
  );
  const tail = Buffer.allocUnsafe(TAIL_BYTES);
  tail.writeUInt32LE(crc32(plain), 0);
  tail.writeUInt32LE(plain.length, 4);
  return [head, ...packed, tail];
}

function stored(plain: Buffer): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < plain.length; at += STORED_BYTES) {
    const piece = plain.subarray(at, at + STORED_BYTES);
    const head = Buffer.allocUnsafe(STORED_HEAD_BYTES);
    head[0] = at + STORED_BYTES >= plain.length ? 1 : 0;
    head.writeUInt16LE(piece.length, 1);
    head.writeUInt16LE(~piece.length & 0xffff, 3);
    pieces.push(head, piece);
  }
  return pieces;
}

/** All values equally often: what is encrypted or compressed already. Deflate is slowest where it gains nothing. */
function isLikeRandom(plain: Buffer): boolean {
  const samples = Math.floor(plain.length / SAMPLE_EVERY);
  if (samples < LEAST_SAMPLES) return false;
  const counts = new Uint32Array(256);
  for (let at = 0; at < samples * SAMPLE_EVERY; at += SAMPLE_EVERY) {
    const value = plain[at] ?? 0;
    counts[value] = (counts[value] ?? 0) + 1;
  }
  const squares = counts.reduce((sum, count) => sum + count * count, 0);
  return squares < RANDOM_UP_TO * (samples + (samples * samples) / 256);
}

interface Member {
  readonly packed: Buffer;
  readonly crc: number;
  readonly bytes: number;
}

export interface UnpackMembers {
  /** What is raised for anything but whole members. */
  readonly damaged: (cause?: unknown) => Error;
  /** Whoever knows a hash of the whole need not have every checksum looked at. */
  readonly isSummed: boolean;
}

async function* membersOf(
  packed: AsyncIterable<Uint8Array>,
  { damaged }: UnpackMembers,
): AsyncGenerator<Member, void, undefined> {
  const source = new TransientSource(packed, damaged);
  try {
    while (await source.hasMore()) {
      const head = await source.take(HEAD_BYTES);
      if (!beginsMembers(head)) throw damaged();
      const length = head.readUInt32LE(HEAD.length);
      if (length > 2 * MEMBER_BYTES) throw damaged();
      const rest = await source.take(length + TAIL_BYTES);
      const bytes = rest.readUInt32LE(length + 4);
      if (bytes > MEMBER_BYTES) throw damaged();
      yield { packed: rest.subarray(0, length), crc: rest.readUInt32LE(length), bytes };
    }
  } finally {
    await source.close();
  }
}

function unpack(from: Member, options: UnpackMembers): Pieces | Promise<Pieces> {
  const plain = storedIn(from.packed);
  if (plain !== undefined) return [checked(plain, from, options)];
  const own = Buffer.from(from.packed);
  return inflateInThread(own, { maxOutputLength: Math.max(from.bytes, 1) }).then(
    (inflated) => [checked(inflated, from, options)],
    (cause: unknown) => {
      throw options.damaged(cause);
    },
  );
}

function checked(plain: Buffer, { crc, bytes }: Member, { damaged, isSummed }: UnpackMembers): Buffer {
  if (plain.length !== bytes || (isSummed && crc32(plain) !== crc)) throw damaged();
  return plain;
}

/** Moved together in its own memory; undefined unless nothing but stored blocks makes up all of it. */
function storedIn(packed: Buffer): Buffer | undefined {
  const blocks: { from: number; to: number }[] = [];
  for (let at = 0; at + STORED_HEAD_BYTES <= packed.length; ) {
    const first = packed[at] ?? 0;
    const length = packed.readUInt16LE(at + 1);
    const from = at + STORED_HEAD_BYTES;
    const to = from + length;
    if (first > 1 || packed.readUInt16LE(at + 3) !== (~length & 0xffff) || to > packed.length)
      return undefined;
    blocks.push({ from, to });
    at = to;
    if (first === 0) continue;
    if (to !== packed.length) return undefined;
    let used = 0;
    for (const block of blocks) {
      packed.copyWithin(used, block.from, block.to);
      used += block.to - block.from;
    }
    return packed.subarray(0, used);
  }
  return undefined;
}
