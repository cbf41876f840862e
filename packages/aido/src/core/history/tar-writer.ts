import type { FileMode } from "./git-objects.ts";

const BLOCK = 512;

/** A tar member with a pax header, so that any name and length comes back exactly. `path` is latin1 text. */
export function* tarMember(path: string, mode: FileMode, content: Buffer, at: Date): Generator<Buffer> {
  const isLink = mode === "120000";
  const records = [paxRecord("path", path)];
  if (isLink) records.push(paxRecord("linkpath", content.toString("latin1")));
  const pax = Buffer.concat(records);
  yield header({ name: "pax", type: "x", size: pax.length, mode: 0o644, at });
  yield padded(pax);
  const permissions = mode === "100755" ? 0o755 : 0o644;
  yield header({
    name: "file",
    type: isLink ? "2" : "0",
    size: isLink ? 0 : content.length,
    mode: permissions,
    at,
  });
  if (!isLink && content.length > 0) yield padded(content);
}

export function tarEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK);
}

/** `length key=value\n`, where length counts itself. */
export function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.from(`${length}${rest}`, "latin1");
}

export function header(member: { name: string; type: string; size: number; mode: number; at: Date }): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  block.write(member.name, 0, "latin1");
  block.write(octal(member.mode, 8), 100, "latin1");
  block.write(octal(0, 8), 108, "latin1");
  block.write(octal(0, 8), 116, "latin1");
  block.write(octal(member.size, 12), 124, "latin1");
  block.write(octal(Math.floor(member.at.getTime() / 1000), 12), 136, "latin1");
  block.write("        ", 148, "latin1");
  block.write(member.type, 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

export function padded(content: Buffer): Buffer {
  const over = content.length % BLOCK;
  return over === 0 ? content : Buffer.concat([content, Buffer.alloc(BLOCK - over)]);
}
