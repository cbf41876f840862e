import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { AidoError } from "@aido/sdk/protocol";

const BYTES = 32;

/** The secret in this file, made when there is none. Two servers that start at once get the same one. */
export async function serverSecret(file: string): Promise<Uint8Array> {
  const known = await read(file);
  if (known !== undefined) return known;
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(randomBytes(BYTES));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file).catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== "EEXIST") throw thrown;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return (await read(file)) ?? (await Promise.reject(broken(file)));
}

async function read(file: string): Promise<Uint8Array | undefined> {
  try {
    const secret = await readFile(file);
    if (secret.length !== BYTES) throw broken(file);
    return secret;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

function broken(file: string): AidoError {
  return new AidoError("INVALID_CONFIG", `The server's secret ${file} is not ${BYTES} bytes long`, {
    hint: "Remove it: a new one is made, and former addresses of ports end.",
  });
}
