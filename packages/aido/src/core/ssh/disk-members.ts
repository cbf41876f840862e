import { header, padded, paxRecord, tarEnd } from "../history/tar-writer.ts";

/** Beyond what a header's own field can say. */
const MAX_HEADER_BYTES = 8 ** 11 - 1;
const LINK_MODE = 0o777;

interface Member {
  name: string;
  type: "0" | "2" | "5";
  mode: number;
  size: number;
  at: Date;
  target?: string;
}

/** Archives of one member each: the tool that extracts them sets modes and times and makes links. */
export function* linkMember(name: string, target: string): Generator<Buffer> {
  yield head({ name, type: "2", mode: LINK_MODE, size: 0, at: new Date(0), target });
  yield tarEnd();
}

export function* directoryMember(name: string, mode: number, at: Date): Generator<Buffer> {
  yield head({ name, type: "5", mode, size: 0, at });
  yield tarEnd();
}

/** The content must have the size that was told; it is cut or filled with zeros when the file changed meanwhile. */
export async function* fileMember(
  member: { name: string; mode: number; size: number; at: Date },
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield head({ ...member, type: "0" });
  let left = member.size;
  for await (const chunk of content) {
    const part = chunk.subarray(0, left);
    left -= part.length;
    if (part.length > 0) yield part;
    if (left === 0) break;
  }
  for (; left > 0; left -= Math.min(left, ZEROS.length)) yield ZEROS.subarray(0, left);
  const over = member.size % 512;
  if (over > 0) yield ZEROS.subarray(0, 512 - over);
  yield tarEnd();
}

const ZEROS = new Uint8Array(65_536);

function head({ name, type, mode, size, at, target }: Member): Buffer {
  const records = [paxRecord("path", toLatin1(name))];
  if (target !== undefined) records.push(paxRecord("linkpath", toLatin1(target)));
  if (size > MAX_HEADER_BYTES) records.push(paxRecord("size", String(size)));
  const pax = Buffer.concat(records);
  const own = { name: "entry", type, mode, at, size: size > MAX_HEADER_BYTES ? 0 : size };
  return Buffer.concat([
    header({ name: "pax", type: "x", size: pax.length, mode: 0o644, at }),
    padded(pax),
    header(own),
  ]);
}

/** Bytes as the writer takes them. */
function toLatin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
