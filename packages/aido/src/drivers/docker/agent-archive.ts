import { readFile } from "node:fs/promises";

const BLOCK = 512;

/** The supervisor as a tar archive to unpack at the root of a container whose engine cannot mount our files. */
export async function agentArchive(agentPath: string): Promise<Buffer> {
  const binary = await readFile(agentPath);
  const padding = Buffer.alloc((BLOCK - (binary.length % BLOCK)) % BLOCK);
  return Buffer.concat([
    header({ name: ".aido/", mode: 0o755, size: 0, type: "5" }),
    header({ name: ".aido/aido-agent", mode: 0o755, size: binary.length, type: "0" }),
    binary,
    padding,
    Buffer.alloc(2 * BLOCK),
  ]);
}

function header(entry: { name: string; mode: number; size: number; type: string }): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  block.write(entry.name, 0);
  block.write(octal(entry.mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(entry.size, 11), 124);
  block.write(octal(0, 11), 136);
  block.write(" ".repeat(8), 148);
  block.write(entry.type, 156);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
