import { randomBytes } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import { madeOnce } from "../made-once.ts";

const BYTES = 32;

/** The secret in this file, made when there is none. Two servers that start at once get the same one. */
export async function serverSecret(file: string): Promise<Uint8Array> {
  const secret = await madeOnce(file, () => randomBytes(BYTES));
  if (secret.length === BYTES) return secret;
  throw new AidoError("INVALID_CONFIG", `The server's secret ${file} is not ${BYTES} bytes long`, {
    hint: "Remove it: a new one is made, and former addresses of ports end.",
  });
}
