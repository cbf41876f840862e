import type { FakeEntry } from "./fake-tree.ts";

const BLOCK = 512;
const TYPE_FLAG: Readonly<Record<number, string>> = { 1: "0", 2: "5", 3: "2" };

export interface TarMember {
  path: string;
  /** 1 file, 2 directory, 3 link. */
  type: number;
  mode: number;
  target: string;
  content: Buffer;
}

/** One ustar member: header, content, padding. Names that do not fit get a pax header before it. */
export function tarMember(entry: FakeEntry, content: Buffer): Buffer {
  const name = entry.type === 2 ? `${entry.path}/` : entry.path;
  const records: [string, string][] = [];
  if (Buffer.byteLength(name) > 100) records.push(["path", name]);
  if (Buffer.byteLength(entry.target) > 100) records.push(["linkpath", entry.target]);
  const parts: Buffer[] = [];
  if (records.length > 0) {
    const pax = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(""));
    parts.push(header("pax", "x", 0o644, pax.length, ""), pad(pax));
  }
  const flag = TYPE_FLAG[entry.type];
  if (flag === undefined) return Buffer.alloc(0);
  parts.push(header(name, flag, entry.mode, content.length, entry.target), pad(content));
  return Buffer.concat(parts);
}

export const TAR_END = Buffer.alloc(BLOCK * 2);

function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + 1;
  while (String(length).length + rest !== length) length = String(length).length + rest;
  return `${length} ${key}=${value}\n`;
}

function pad(content: Buffer): Buffer {
  const padding = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return padding === 0 ? content : Buffer.concat([content, Buffer.alloc(padding)]);
}

function header(name: string, flag: string, mode: number, size: number, target: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0, 100);
  block.write(mode.toString(8).padStart(7, "0"), 100);
  block.write("0000000\u00000000000\u0000", 108);
  block.write(size.toString(8).padStart(11, "0"), 124);
  block.write("00000000000", 136);
  block.write("        ", 148);
  block.write(flag, 156);
  block.write(target, 157, 100);
  block.write("ustar\u000000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\u0000 `, 148);
  return block;
}

/** Raises EINVAL on what is not a tar archive and on names that lead out of it. */
export function readTar(archive: Buffer): TarMember[] {
  const members: TarMember[] = [];
  let pax = new Map<string, string>();
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) return members;
    if (block.toString("latin1", 257, 262) !== "ustar") throw invalid("not a tar archive");
    const size = Number.parseInt(field(block, 124, 12), 8);
    const content = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (content.length !== size) throw invalid("the archive is cut short");
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const flag = field(block, 156, 1);
    if (flag === "x") {
      for (const [, key = "", value = ""] of content.toString().matchAll(/\d+ ([^=]+)=([^\n]*)\n/g))
        pax.set(key, value);
      continue;
    }
    const prefix = field(block, 345, 155);
    const short = field(block, 0, 100);
    const path = (pax.get("path") ?? (prefix === "" ? short : `${prefix}/${short}`)).replace(/^\.\//, "");
    if (path.startsWith("/") || path.split("/").includes("..")) throw invalid(`the name ${path} leads out`);
    const type = flag === "5" ? 2 : flag === "2" ? 3 : flag === "0" || flag === "" ? 1 : 4;
    if (type === 4) throw invalid(`${path} is neither file, directory nor link`);
    members.push({
      path: path.replace(/\/$/, ""),
      type,
      mode: Number.parseInt(field(block, 100, 8), 8),
      target: pax.get("linkpath") ?? field(block, 157, 100),
      content,
    });
    pax = new Map();
  }
  return members;
}

function field(block: Buffer, at: number, length: number): string {
  const raw = block.subarray(at, at + length);
  const end = raw.indexOf(0);
  return raw.toString("utf8", 0, end === -1 ? length : end).trim();
}

function invalid(message: string): Error {
  return Object.assign(new Error(message), { code: "EINVAL" });
}
