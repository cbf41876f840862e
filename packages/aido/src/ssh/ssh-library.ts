import { createRequire } from "node:module";
import type ssh2 from "ssh2";

export type SshLibrary = typeof ssh2;

/** Loaded when a server listens for SSH, and not before: it takes longer to load than most commands take to run. */
export async function loadSshLibrary(): Promise<SshLibrary> {
  return createRequire(import.meta.url)("ssh2") as SshLibrary;
}
