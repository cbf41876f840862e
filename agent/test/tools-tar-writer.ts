/** Archives by hand: what no honest program writes. */
export interface Member {
  readonly name: string;
  readonly type?: string;
  readonly link?: string;
  readonly mode?: number;
  readonly content?: string;
  /** What the header claims, when it is not the content's length. */
  readonly size?: number;
  readonly checksum?: number;
}

const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;

/** Puts the checksum into a header. */
export function sign(block: Buffer, checksum?: number): void {
  block.write("        ", 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(checksum ?? sum, 6)} `, 148);
}

export function member(of: Member): Buffer {
  const content = Buffer.from(of.content ?? "", "latin1");
  const block = Buffer.alloc(512);
  block.write(of.name, 0, 100, "latin1");
  block.write(octal(of.mode ?? 0o644, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(of.size ?? content.length, 11), 124);
  block.write(octal(0, 11), 136);
  block.write(of.type ?? "0", 156);
  block.write(of.link ?? "", 157, 100, "latin1");
  block.write("ustar\x0000", 257);
  sign(block, of.checksum);
  return Buffer.concat([block, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

export function pax(records: Readonly<Record<string, string>>): Buffer {
  let content = "";
  for (const [key, value] of Object.entries(records)) {
    const rest = ` ${key}=${value}\n`;
    let length = rest.length;
    while (`${length}${rest}`.length !== length) length = `${length}${rest}`.length;
    content += `${length}${rest}`;
  }
  return member({ name: "PaxHeaders/x", type: "x", content });
}

export function archive(...members: readonly Buffer[]): Buffer {
  return Buffer.concat([...members, Buffer.alloc(1024)]);
}
