export interface SshKeyRecord {
  sandboxId: string;
  /** Empty is the sandbox's own user. */
  username: string;
  type: string;
  fingerprint: string;
  publicKey: string;
  comment: string;
  createdAt: Date;
}

/** Which key a login was made with. */
export type SshKeyName = Pick<SshKeyRecord, "sandboxId" | "username" | "fingerprint">;

/** Gone with their sandbox. */
export interface SshKeyStore {
  /** What is kept then: the record, or the one that was there before. Raises CONTAINER_NOT_FOUND. */
  add(record: SshKeyRecord): Promise<SshKeyRecord>;
  get(name: SshKeyName): Promise<SshKeyRecord | undefined>;
  /** False when there was none. */
  remove(name: SshKeyName): Promise<boolean>;
  removeAll(sandboxId: string): Promise<void>;
  /** Oldest first. */
  list(sandboxId: string): Promise<readonly SshKeyRecord[]>;
}
