/** A key that may log in to a sandbox. */
export interface SshKey {
  sandboxId: string;
  /** The user inside whom it logs in as; undefined is the sandbox's own user. */
  username: string | undefined;
  /** `ssh-ed25519`, `ssh-rsa` or one of the `ecdsa-sha2-…`. */
  type: string;
  /** `SHA256:…`, as ssh-keygen shows it. */
  fingerprint: string;
  /** Type and key, without the comment. */
  publicKey: string;
  comment: string;
  createdAt: Date;
}

export interface AddSshKey {
  /** One line as in an id_….pub file. Options before the type are refused. */
  publicKey: string;
  username?: string | undefined;
}

/** Where and as whom an SSH client logs in to a sandbox. */
export interface SshAddress {
  host: string;
  port: number;
  /** The user name to give to the client. */
  login: string;
  /** Type and key, for a line in known_hosts. */
  hostKey: string;
}

/** Logging in to sandboxes with an SSH client. Keys are kept outside of the sandbox; images need no sshd. */
export interface Ssh {
  /** Idempotent: a key that is there already comes back as it is. */
  addKey(sandbox: string, request: AddSshKey): Promise<SshKey>;
  /** By the line itself or its fingerprint. Connections made with the key end. False when there was no such key. */
  removeKey(sandbox: string, request: { key: string; username?: string | undefined }): Promise<boolean>;
  keys(sandbox: string): Promise<readonly SshKey[]>;
  /** Raises SSH_NOT_SERVED when no server listens for SSH. */
  address(sandbox: string, username?: string): Promise<SshAddress>;
}
