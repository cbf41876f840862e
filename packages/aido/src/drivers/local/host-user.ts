import { createHash } from "node:crypto";

/** Beyond what distributions, systemd and user namespaces give out by default. */
const FIRST = 0x70000000;
const COUNT = 0x0ffffffe;

/**
 * An unprivileged host user of the sandbox's own, so that limits per user are limits per sandbox and none of its
 * files is root's. Found by hashing rather than counting: every process and data directory agrees without a lock.
 */
export function hostUser(directory: string): number {
  return FIRST + (createHash("sha256").update(directory).digest().readUInt32LE() % COUNT);
}

export function isHostUser(uid: number): boolean {
  return uid >= FIRST && uid < FIRST + COUNT;
}
