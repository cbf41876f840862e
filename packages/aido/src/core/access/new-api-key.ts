import { createHash, randomBytes } from "node:crypto";
import type { ApiKeyRecord, KeyLimits, Scope } from "./api-keys.ts";

const ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** A new key: `aido_<id>_<secret>`. Only the hash of the secret is kept. */
export function newApiKey(options: {
  name: string;
  scopes: readonly Scope[];
  limits?: KeyLimits;
  now: Date;
  expiresAt: Date | undefined;
}): { key: string; record: ApiKeyRecord } {
  const id = [...randomBytes(8)].map((byte) => ID_LETTERS[byte % ID_LETTERS.length]).join("");
  const secret = randomBytes(32).toString("base64url");
  return {
    key: `aido_${id}_${secret}`,
    record: {
      id,
      name: options.name,
      secretHash: createHash("sha256").update(secret).digest("hex"),
      scopes: options.scopes,
      limits: options.limits ?? {},
      createdAt: options.now,
      expiresAt: options.expiresAt,
      revokedAt: undefined,
    },
  };
}
