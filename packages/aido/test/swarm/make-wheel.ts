import { crc32 } from "node:zlib";

/** A Python package of one module, as pip installs it without a build and without a network. */
export function makeWheel(module: string, code: string): Buffer {
  const info = `${module}-1.0.dist-info`;
  return zip({
    [`${module}.py`]: code,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${module}\nVersion: 1.0\n`,
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/RECORD`]: "",
  });
}

/** Nothing in it is compressed. */
function zip(files: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  const list: Buffer[] = [];
  let at = 0;
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path);
    const data = Buffer.from(content);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc32(data), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(data.length, 18);
    fields.writeUInt16LE(name.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(at, 10);
    list.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, place, name);
    parts.push(Buffer.from("PK\x03\x04", "latin1"), fields, name, data);
    at += 30 + name.length + data.length;
  }
  const directory = Buffer.concat(list);
  const end = Buffer.alloc(18);
  const count = Object.keys(files).length;
  end.writeUInt16LE(count, 4);
  end.writeUInt16LE(count, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, directory, Buffer.from("PK\x05\x06", "latin1"), end]);
}
