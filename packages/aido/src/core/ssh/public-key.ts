import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";

const MAX_LINE_BYTES = 16_384;
const MAX_COMMENT = 256;
const MIN_RSA_BITS = 2_048;
const MAX_RSA_BITS = 16_384;
const ED25519_BYTES = 32;
/** Bytes of an uncompressed point. */
const POINT_BYTES: Readonly<Record<string, number>> = { nistp256: 65, nistp384: 97, nistp521: 133 };
const UNCOMPRESSED = 4;
const TYPES = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "ssh-rsa",
] as const;

export interface PublicKey {
  type: (typeof TYPES)[number];
  fingerprint: string;
  /** Type and key, without the comment. */
  line: string;
  comment: string;
}

/** Raises VALIDATION_ERROR unless the text is one key, whole and strong enough, with nothing before it. */
export function parsePublicKey(text: string): PublicKey {
  const line = text.trim();
  if (line === "") throw invalid("The public key is empty");
  if (Buffer.byteLength(line) > MAX_LINE_BYTES)
    throw invalid(`The public key has over ${MAX_LINE_BYTES} bytes`);
  // Also a line break: what follows it would be a line of its own wherever keys are kept as lines.
  if (/\p{Cc}/u.test(line)) throw invalid("The public key is not one line of plain text");
  const [, name = "", encoded = "", comment = ""] = /^(\S+) +(\S+)(?: +(.*))?$/.exec(line) ?? [];
  const type = TYPES.find((known) => known === name);
  if (type === undefined) {
    throw invalid(`A key begins with its type: ${TYPES.join(", ")}; options before it are not taken`);
  }
  const blob = Buffer.from(encoded, "base64");
  if (blob.toString("base64") !== encoded) throw invalid("The key is not base64, or was cut off");
  checkBlob(type, blob);
  if (comment.length > MAX_COMMENT) throw invalid(`The key's comment has over ${MAX_COMMENT} characters`);
  return { type, fingerprint: fingerprintOf(blob), line: `${type} ${encoded}`, comment };
}

/** As ssh-keygen shows it. */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

function checkBlob(type: PublicKey["type"], blob: Buffer): void {
  const fields = readFields(blob);
  if (fields?.[0]?.toString("latin1") !== type) throw invalid(`The key is not one of type ${type}`);
  const rest = fields.slice(1);
  if (type === "ssh-ed25519") {
    if (rest.length === 1 && rest[0]?.length === ED25519_BYTES) return;
  } else if (type === "ssh-rsa") {
    const [exponent, modulus] = rest;
    if (rest.length === 2 && exponent !== undefined && modulus !== undefined) {
      checkRsa(exponent, modulus);
      return;
    }
  } else {
    const [curve, point] = rest;
    const name = type.slice("ecdsa-sha2-".length);
    const fits = point?.length === POINT_BYTES[name] && point?.[0] === UNCOMPRESSED;
    if (rest.length === 2 && curve?.toString("latin1") === name && fits) return;
  }
  throw invalid(`The key is not a whole key of type ${type}`);
}

function checkRsa(exponent: Buffer, modulus: Buffer): void {
  const bits = bitsOf(modulus);
  const isOdd = ((exponent.at(-1) ?? 0) & (modulus.at(-1) ?? 0) & 1) === 1;
  if (bits === 0 || !isOdd || bitsOf(exponent) < 2)
    throw invalid("The key is not a whole key of type ssh-rsa");
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS) {
    throw invalid(`The RSA key has ${bits} bits; ${MIN_RSA_BITS} to ${MAX_RSA_BITS} are taken`);
  }
}

/** Of a number as RFC 4251 writes it; 0 for one that is negative. */
function bitsOf(number: Buffer): number {
  const at = number.findIndex((byte) => byte !== 0);
  const first = number[at] ?? 0;
  if (at === -1 || (at === 0 && first > 127)) return 0;
  return (number.length - at - 1) * 8 + (32 - Math.clz32(first));
}

/** Each with its length before it; undefined when that does not come out even. */
function readFields(blob: Buffer): readonly Buffer[] | undefined {
  const fields: Buffer[] = [];
  for (let at = 0; at < blob.length; ) {
    if (at + 4 > blob.length) return undefined;
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return undefined;
    fields.push(blob.subarray(at + 4, end));
    at = end;
  }
  return fields;
}

function invalid(message: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, {
    hint: "Give the one line of a file such as ~/.ssh/id_ed25519.pub; `ssh-keygen -t ed25519` makes a key.",
    details: { field: "publicKey" },
  });
}
