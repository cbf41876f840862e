/** What a caller may do. */
export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export interface ApiKeyRecord {
  id: string;
  name: string;
  /** SHA-256 of the secret, hex; the secret itself is shown once and not kept. */
  secretHash: string;
  scopes: readonly Scope[];
  createdAt: Date;
  expiresAt: Date | undefined;
  revokedAt: Date | undefined;
}

export interface ApiKeys {
  get(id: string): Promise<ApiKeyRecord | undefined>;
  list(): Promise<readonly ApiKeyRecord[]>;
  /** Whether there is one that is not revoked: asked by every request that comes without. */
  hasAny(): Promise<boolean>;
  insert(key: ApiKeyRecord): Promise<void>;
  /** False when there is no such key. */
  revoke(id: string, at: Date): Promise<boolean>;
}
