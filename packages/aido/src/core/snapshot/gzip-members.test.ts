import { randomBytes } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { beginsMembers, MEMBER_BYTES, packMembers, unpackMembers } from "./gzip-members.ts";

const options = { damaged: () => new Error("damaged"), isSummed: true };
const text = (bytes: number) => Buffer.alloc(bytes, "Some words that come again and again. ");
const mixed = Buffer.concat([text(400_000), randomBytes(700_000), text(10), Buffer.alloc(900_000)]);

/** Chunks that all lie in the same memory, each gone when the next is asked for. */
async function* transient(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  const memory = Buffer.alloc(size);
  for (let at = 0; at < bytes.length; at += size) {
    yield memory.subarray(0, bytes.copy(memory, 0, at, at + size));
    memory.fill(0xee);
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(Buffer.from(chunk));
  return Buffer.concat(parts);
}

test.each([
  ["nothing", Buffer.alloc(0)],
  ["one byte", Buffer.from("x")],
  ["exactly one member", randomBytes(MEMBER_BYTES)],
  ["one byte more", randomBytes(MEMBER_BYTES + 1)],
  ["text", text(1_500_000)],
  ["what does not compress", randomBytes(1_500_000)],
  ["all kinds", mixed],
])("any gzip reads %s, and so do we", async (_, plain) => {
  const packed = await collect(packMembers(transient(plain, 70_001)));
  expect(gunzipSync(packed).equals(plain)).toBe(true);
  expect(beginsMembers(packed)).toBe(true);
  for (const size of [61, 4096, 300_000, 5_000_000]) {
    const back = await collect(unpackMembers(transient(packed, size), options));
    expect(back.equals(plain)).toBe(true);
  }
});

test("what compresses becomes smaller, and what does not hardly larger", async () => {
  const size = async (plain: Buffer) => (await collect(packMembers(transient(plain, 65_536)))).length;
  expect(await size(text(3_000_000))).toBeLessThan(100_000);
  expect(await size(randomBytes(3_000_000))).toBeLessThan(3_001_000);
});

test("whatever is cut off, changed or added is told", async () => {
  const packed = await collect(packMembers(transient(mixed, 65_536)));
  const read = (bytes: Buffer) => collect(unpackMembers(transient(bytes, 100_000), options));
  for (let length = 1; length < packed.length; length += 9973) {
    await expect(read(packed.subarray(0, length))).rejects.toThrow("damaged");
  }
  for (let at = 3; at < packed.length; at += 7919) {
    const changed = Buffer.from(packed);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    // Deflate has bits that say nothing; changed, they change nothing.
    const found = await read(changed).then(
      (back) => back.equals(mixed),
      (thrown: Error) => thrown.message,
    );
    expect([true, "damaged"]).toContain(found);
  }
  await expect(read(Buffer.concat([packed, gzipSync("more")]))).rejects.toThrow("damaged");
  await expect(read(Buffer.concat([packed, Buffer.alloc(20)]))).rejects.toThrow("damaged");
});

test("a member that claims to be larger than ours are, or unfolds to more than it says, is refused", async () => {
  const packed = await collect(packMembers(transient(text(100_000), 65_536)));
  const read = (bytes: Buffer) => collect(unpackMembers(transient(bytes, 100_000), options));
  const long = Buffer.from(packed);
  long.writeUInt32LE(0xffff_ffff, 16);
  await expect(read(long)).rejects.toThrow("damaged");
  const unfolding = Buffer.from(packed);
  unfolding.writeUInt32LE(1000, unfolding.length - 4);
  await expect(read(unfolding)).rejects.toThrow("damaged");
  const huge = Buffer.from(packed);
  huge.writeUInt32LE(0x7fff_ffff, huge.length - 4);
  await expect(read(huge)).rejects.toThrow("damaged");
});
