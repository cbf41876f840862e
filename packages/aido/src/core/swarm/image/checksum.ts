import { createHash } from "node:crypto";

/** Of parts in their order; each is written with its length, so that no two lists are alike. */
export function checksumOf(parts: Iterable<string | Uint8Array>): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.byteLength}:`).update(bytes);
  }
  return hash.digest("hex");
}
