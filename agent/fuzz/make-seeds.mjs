// Writes a starting corpus for the fuzzer: one file per conversation. usage: node make-seeds.mjs DIRECTORY
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const u = (size) => (value) => {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntLE(value, 0, Math.min(size, 6));
  return bytes;
};
const [u8, u16, u32, u64] = [1, 2, 4, 8].map(u);
const str = (text) => Buffer.concat([u32(text.length), Buffer.from(text)]);
const list = (items) => Buffer.concat([u32(items.length), ...items.map(str)]);
const frame = (type, ...fields) => {
  const body = Buffer.concat(fields);
  return Buffer.concat([u32(body.length + 1), u8(type), body]);
};

const hello = frame(1, u16(1), Buffer.alloc(32, 7));
const configure = frame(3, u64(60_000), u32(1000), u32(1000), str("/work"));
const exec = (id, flags, argv, outputLimit = 0) =>
  frame(
    4,
    ...[str(id), u8(flags), u32(0), u32(0), str("/"), list(argv), list(["A=1"]), u16(24), u16(80)],
    ...[u64(50), u32(10), u64(outputLimit)],
  );
const attach = (id) => frame(5, str(id), u64(0), u64(0));
const ack = (id, offset) => frame(6, str(id), u8(1), u64(offset));
const stdin = (id, offset, text) => frame(7, str(id), u64(offset), Buffer.from(text));
const stdinClose = (id, offset) => frame(8, str(id), u64(offset));
const resize = (id) => frame(9, str(id), u16(1), u16(2));
const signal = (id, number, scope) => frame(10, str(id), u8(number), u8(scope), u32(5));
const forget = (id) => frame(11, str(id));
const listAll = frame(12);
const shutdown = frame(13, u32(0));

const conversations = {
  opening: [hello, frame(2, u64(9)), configure, listAll],
  exec: [exec("a", 0, ["e1", "x"]), ack("a", 2), listAll, forget("a")],
  failing: [exec("a", 0, ["x"]), exec("b", 0, ["f"]), exec("b", 0, ["e0"])],
  stdin: [exec("a", 1, ["s"]), stdin("a", 0, "hello"), stdin("a", 3, "lo you"), stdinClose("a", 9)],
  terminal: [exec("a", 3, ["s"]), resize("a"), stdin("a", 0, "ls\n"), stdinClose("a", 3)],
  again: [exec("a", 0, ["e0"]), exec("a", 0, ["e0"]), attach("a"), attach("a"), forget("a"), forget("a")],
  kill: [exec("a", 0, ["s"]), signal("a", 15, 1), signal("a", 9, 0), signal("a", 9, 1), forget("a")],
  limit: [exec("a", 0, ["sabcdefgh"], 3), listAll],
  tool: [exec("t", 4, ["e0", "/work", "file"]), ack("t", 1), shutdown],
  main: [
    exec("m", 16, ["e7"]),
    exec("n", 16, ["e0"]),
    exec("t", 20, ["e0"]),
    ack("m", 2),
    attach("m"),
    forget("m"),
  ],
  many: Array.from({ length: 300 }, (_, i) => exec(`e${i}`, 0, ["e0"])),
};

const [directory] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
for (const [name, frames] of Object.entries(conversations)) {
  const bytes = Buffer.concat(frames);
  // The first byte: 1 = as if greeted already; the rest says in what pieces the bytes come.
  for (const [size, mode] of [
    ["whole", 31],
    ["pieces", 7],
  ]) {
    const first = name === "opening" ? mode & ~1 : mode;
    writeFileSync(join(directory, `${name}-${size}`), Buffer.concat([u8(first), bytes]));
  }
}
