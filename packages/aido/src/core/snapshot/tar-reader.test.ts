import { expect, test } from "vitest";
import { inChunks, sha256 } from "../../../test/contract/object-store-contract.ts";
import { tarEnd, tarMember } from "../history/tar-writer.ts";
import { type ArchiveInfo, TarReader } from "./tar-reader.ts";

const AT = new Date("2026-01-01T00:00:00Z");

function archive(...files: readonly (readonly [string, Buffer])[]): Buffer {
  return Buffer.concat([
    ...files.flatMap(([name, content]) => [...tarMember(name, "100644", content, AT)]),
    tarEnd(),
  ]);
}

async function take(reader: TarReader): Promise<{ info: ArchiveInfo; bytes: Buffer }> {
  const parts: Uint8Array[] = [];
  const stream = reader.archive();
  for (;;) {
    const next = await stream.next();
    if (next.done === true) return { info: next.value, bytes: Buffer.concat(parts) };
    parts.push(Buffer.from(next.value));
  }
}

const FIRST = archive(
  ["a", Buffer.from("x".repeat(1000))],
  ["b".repeat(3000), Buffer.alloc(0)],
  ["c", Buffer.alloc(512)],
);
const SECOND = archive(["z", Buffer.alloc(70_000, "z")]);

test.each([1, 7, 511, 512, 513, 1024, 4096, 1_000_000])(
  "archives that follow each other are told apart in chunks of %d bytes",
  async (size) => {
    const reader = new TarReader(inChunks(Buffer.concat([FIRST, SECOND]), size));
    const one = await take(reader);
    expect(one.bytes.equals(FIRST)).toBe(true);
    expect(one.info).toEqual({ entries: 3, bytes: FIRST.length, sha256: sha256(FIRST) });
    const two = await take(reader);
    expect(two.bytes.equals(SECOND)).toBe(true);
    expect(two.info.entries).toBe(1);
    await reader.end();
  },
);

test("an archive that is cut off anywhere is told", async () => {
  for (let length = 0; length < FIRST.length; length += 256) {
    const reader = new TarReader(inChunks(FIRST.subarray(0, length), 300));
    await expect(take(reader)).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
  }
});

test("a damaged header, and anything after the end, is told", async () => {
  const damaged = Buffer.from(FIRST);
  damaged[100] = 0x39;
  await expect(take(new TarReader(inChunks(damaged, 4096)))).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
  const longer = new TarReader(inChunks(Buffer.concat([FIRST, Buffer.from("x")]), 4096));
  await take(longer);
  await expect(longer.end()).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
});

test("a size above eight gibibytes, which only an extended header can tell, is believed", async () => {
  const large = 9 * 1024 ** 3;
  const record = `19 size=${large}\n`;
  expect(record).toHaveLength(19);
  const [header] = tarMember("x", "100644", Buffer.from("y"), AT);
  const extended = patched(header as Buffer, Buffer.byteLength(record));
  const body = Buffer.alloc(512);
  body.write(record);
  const member = Buffer.concat([extended, body, archive(["big", Buffer.alloc(0)]).subarray(1024, 1536)]);
  const source = async function* () {
    yield member;
    const zeros = Buffer.alloc(64 * 1024 * 1024, 1);
    for (let left = large; left > 0; left -= zeros.length) yield zeros;
    yield tarEnd();
  };
  const reader = new TarReader(source());
  let bytes = 0;
  const stream = reader.archive();
  for (let at = 0; at < 4; at += 1) {
    const { value } = await stream.next();
    if (value instanceof Uint8Array) bytes += value.byteLength;
  }
  // Still within the content: ones are no header, so a reader that took the small size would have failed.
  expect(bytes).toBeGreaterThan(64 * 1024 * 1024);
  await stream.return(undefined as never);
});

/** The extended header with another size. */
function patched(header: Buffer, size: number): Buffer {
  const block = Buffer.from(header);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  block.write("        ", 148, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

test("chunks in memory that is used again are read all the same", async () => {
  const both = Buffer.concat([FIRST, SECOND]);
  for (const size of [100, 700, 5000]) {
    const memory = Buffer.alloc(size);
    const source = async function* () {
      for (let at = 0; at < both.length; at += size) {
        yield memory.subarray(0, both.copy(memory, 0, at, at + size));
        memory.fill(0xee);
      }
    };
    const reader = new TarReader(source());
    expect((await take(reader)).bytes.equals(FIRST)).toBe(true);
    expect((await take(reader)).info.sha256).toBe(sha256(SECOND));
    await reader.end();
  }
});

test("an archive that need not be hashed is not", async () => {
  const reader = new TarReader(inChunks(FIRST, 4096), { isHashed: false });
  expect((await take(reader)).info).toEqual({ entries: 3, bytes: FIRST.length, sha256: undefined });
});
