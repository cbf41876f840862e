import { AidoError } from "@aido/sdk/protocol";
import { madeOnce } from "../core/made-once.ts";
import type { SshLibrary } from "./ssh-library.ts";

export interface HostKey {
  privateKey: string;
  /** Type and key. */
  publicKey: string;
}

const MAX_TRIES = 20;

/** One in some 250 of the library's keys has a byte too few, and nobody can read it. */
export function readableKey(utils: SshLibrary["utils"]): string {
  for (let tries = 1; ; tries += 1) {
    const { private: key } = utils.generateKeyPairSync("ed25519");
    if (tries === MAX_TRIES || !(utils.parseKey(key) instanceof Error)) return key;
  }
}

/** The key by which clients know this server: made once, so that they do not have to be told again. */
export async function hostKey({ utils }: SshLibrary, file: string): Promise<HostKey> {
  const privateKey = (await madeOnce(file, () => readableKey(utils))).toString("utf8");
  const parsed = utils.parseKey(privateKey);
  if (parsed instanceof Error || parsed.type !== "ssh-ed25519") {
    throw new AidoError("INVALID_CONFIG", `The SSH host key ${file} is no ed25519 key`, {
      hint: "Remove it: a new one is made, and clients are asked whether they trust it.",
    });
  }
  return { privateKey, publicKey: `ssh-ed25519 ${parsed.getPublicSSH().toString("base64")}` };
}
