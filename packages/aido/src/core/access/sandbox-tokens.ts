import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { SandboxStore } from "../store/store.ts";

const TOKEN_BYTES = 32;
/** Nobody knows what hashes to this. */
const NO_HASH = "0".repeat(64);

/** 32 random bytes, hex. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("hex");
}

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/**
 * The one secret that opens the sidecar API of one sandbox. Its hash is part of the sandbox's record, so that it is
 * made in the same step, survives stops and starts, and goes with it.
 */
export class SandboxTokens {
  readonly #sandboxes: SandboxStore;

  constructor(sandboxes: SandboxStore) {
    this.#sandboxes = sandboxes;
  }

  /** A new token for a sandbox that exists; the one before opens nothing any more. */
  async issue(sandboxId: string, chosen?: string): Promise<string> {
    const token = chosen ?? newToken();
    await this.#sandboxes.update(sandboxId, { tokenHash: hashToken(token) });
    return token;
  }

  /** By the whole id. A sandbox that is not there takes as long and says as little as a wrong token. */
  async verify(sandboxId: string, token: string): Promise<boolean> {
    return await this.verifyHash(sandboxId, hashToken(token));
  }

  hash(token: string): string {
    return hashToken(token);
  }

  /** As `verify`, for a token that was not kept itself. */
  async verifyHash(sandboxId: string, hash: string): Promise<boolean> {
    const record = await this.#sandboxes.get(sandboxId);
    const kept = record?.tokenHash ?? NO_HASH;
    const isSame = timingSafeEqual(Buffer.from(kept), Buffer.from(hash));
    return isSame && record !== undefined && record.state !== "deleted";
  }
}
