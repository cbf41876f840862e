import { TAR_BLOCK } from "./tar-entry.ts";

export interface NewTarEntry {
  name: string;
  type: "file" | "directory" | "symlink";
  mode: number;
  size: number;
  modifiedAt: Date;
  target?: string;
  content?: AsyncIterable<Uint8Array>;
}

const FLAGS = { file: "0", symlink: "2", directory: "5" } as const;
const MOST_OCTAL_SIZE = 8 ** 11 - 1;

/** A ustar archive, with pax headers for what does not fit. */
export async function* writeTar(entries: AsyncIterable<NewTarEntry>): AsyncGenerator<Uint8Array> {
  for await (const entry of entries) {
    const name = entry.type === "directory" ? `${entry.name}/` : entry.name;
    const pax = paxRecords(name, entry);
    if (pax.length > 0) {
      yield header({ ...entry, name: "pax", type: "file", size: pax.length }, "pax", "x");
      yield pax;
      yield zeros(pax.length);
    }
    yield header(entry, name, FLAGS[entry.type]);
    if (entry.content === undefined || entry.size === 0) continue;
    yield* exactly(entry.content, entry.size);
    yield zeros(entry.size);
  }
  yield new Uint8Array(2 * TAR_BLOCK);
}

/** A file may shrink or grow while it is read; the archive keeps the size it announced. */
async function* exactly(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let left = size;
  for await (const chunk of content) {
    const part = chunk.subarray(0, left);
    left -= part.length;
    if (part.length > 0) yield part;
    if (left === 0) return;
  }
  for (; left > 0; left -= Math.min(left, 65_536)) yield new Uint8Array(Math.min(left, 65_536));
}

function paxRecords(name: string, entry: NewTarEntry): Buffer {
  const records: string[] = [];
  const add = (key: string, value: string) => {
    const rest = ` ${key}=${value}\n`;
    const bytes = Buffer.byteLength(rest);
    // The length counts its own digits.
    let length = bytes + String(bytes).length;
    if (String(length).length !== String(bytes).length) length = bytes + String(length).length;
    records.push(`${length}${rest}`);
  };
  if (!fits(name)) add("path", name);
  if (entry.target !== undefined && !fits(entry.target)) add("linkpath", entry.target);
  if (entry.size > MOST_OCTAL_SIZE) add("size", String(entry.size));
  return Buffer.from(records.join(""));
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= 100 && /^[\x20-\x7e]*$/.test(text);
}

function header(entry: NewTarEntry, name: string, flag: string): Buffer {
  const block = Buffer.alloc(TAR_BLOCK);
  const octal = (value: number, at: number, length: number) =>
    block.write(
      value
        .toString(8)
        .padStart(length - 1, "0")
        .slice(-(length - 1)),
      at,
      "latin1",
    );
  block.write(fits(name) ? name : "pax", 0, 100, "latin1");
  octal(entry.mode & 0o777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.type === "file" && entry.size <= MOST_OCTAL_SIZE ? entry.size : 0, 124, 12);
  octal(Math.max(0, Math.floor(entry.modifiedAt.getTime() / 1000)), 136, 12);
  block.write("        ", 148, "latin1");
  block.write(flag, 156, "latin1");
  if (entry.target !== undefined && fits(entry.target)) block.write(entry.target, 157, 100, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function zeros(size: number): Uint8Array {
  return new Uint8Array((TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK);
}
