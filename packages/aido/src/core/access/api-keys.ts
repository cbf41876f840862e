/** What a caller may do. */
export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key has in place of the server's settings; 0 means no limit. */
export interface KeyLimits {
  maxSandboxes?: number;
  maxCpus?: number;
  maxMemoryBytes?: number;
  /** Requests a minute. */
  rateLimit?: number;
}

export interface ApiKeyRecord {
  id: string;
  name: string;
  /** SHA-256 of the secret, hex; the secret itself is shown once and not kept. */
  secretHash: string;
  scopes: readonly Scope[];
  limits: KeyLimits;
  createdAt: Date;
  expiresAt: Date | undefined;
  revokedAt: Date | undefined;
}

export interface ApiKeys {
  get(id: string): Promise<ApiKeyRecord | undefined>;
  list(): Promise<readonly ApiKeyRecord[]>;
  /** Whether one was ever made, also one that is revoked or has expired: asked by every request that comes without. */
  hadAny(): Promise<boolean>;
  /** Whether there is one that is not revoked. */
  hasAny(): Promise<boolean>;
  insert(key: ApiKeyRecord): Promise<void>;
  /** False when there is no such key. */
  revoke(id: string, at: Date): Promise<boolean>;
}
