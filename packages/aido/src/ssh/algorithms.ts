import type { Algorithms } from "ssh2";

/** Offered to clients: nothing with SHA-1, CBC or small groups, and no compression, which costs memory before a login. */
export const ALGORITHMS: Algorithms = {
  kex: [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
  ],
  cipher: [
    "aes256-gcm@openssh.com",
    "aes128-gcm@openssh.com",
    "chacha20-poly1305@openssh.com" as "aes256-gcm@openssh.com",
    "aes256-ctr",
    "aes128-ctr",
  ],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
  serverHostKey: ["ssh-ed25519"],
  compress: ["none"],
};

/** Signatures by RSA keys are made with SHA-2; with SHA-1 they are refused. */
export const RSA_HASHES: readonly (string | undefined)[] = ["sha256", "sha512"];
