import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { hostname } from "node:os";

/** Tells the sandboxes of one data directory on one machine from all others of the same backend. */
export function scopeOf(dataDir: string): string {
  return createHash("sha256")
    .update(`${machine()}\n${realpathSync(dataDir)}`)
    .digest("hex")
    .slice(0, 16);
}

function machine(): string {
  try {
    return readFileSync("/etc/machine-id", "utf8").trim() || hostname();
  } catch {
    return hostname();
  }
}
