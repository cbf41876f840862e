import type { PublicKeyAuthContext } from "ssh2";
import type { SshKeyName } from "../core/ssh/ssh-key-store.ts";
import type { SshService } from "../core/ssh/ssh-service.ts";
import { RSA_HASHES } from "./algorithms.ts";
import type { SshLibrary } from "./ssh-library.ts";

const MAX_KEY_BYTES = 16_384;

/**
 * Undefined when this key may not log in under this name. A client first asks whether a key would do, then proves that it
 * has it.
 */
export async function verifyLogin(
  { ssh, library }: { ssh: SshService; library: SshLibrary },
  context: PublicKeyAuthContext,
): Promise<{ key: SshKeyName; isProven: boolean } | undefined> {
  const { algo, data } = context.key;
  if (data.length > MAX_KEY_BYTES) return undefined;
  if (algo === "ssh-rsa" && !RSA_HASHES.includes(context.hashAlgo)) return undefined;
  const key = await ssh.authorize(context.username, data);
  // The kept key is the strong one that was checked when it was added; the client must mean the same.
  if (key === undefined || key.type !== algo) return undefined;
  if (context.signature === undefined || context.blob === undefined) return { key, isProven: false };
  const parsed = library.utils.parseKey(key.publicKey);
  if (parsed instanceof Error) return undefined;
  return parsed.verify(context.blob, context.signature, context.hashAlgo) === true
    ? { key, isProven: true }
    : undefined;
}
