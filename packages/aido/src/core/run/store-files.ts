import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RunFile } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";

/** Writes files that came with a request beneath a directory of aido's own, readable for the sandbox's user. */
export async function storeFiles(
  directory: string,
  files: readonly RunFile[],
  signal?: AbortSignal,
): Promise<void> {
  for (const file of files) {
    signal?.throwIfAborted();
    await storeFile(directory, file, signal);
  }
}

async function storeFile(directory: string, file: RunFile, signal: AbortSignal | undefined): Promise<void> {
  const parts = file.path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..") || file.path.includes("\0")) {
    throw new AidoError("INVALID_PATH", `${JSON.stringify(file.path)} is not a relative path of a file`, {
      hint: 'Write it without "..", "." and empty parts.',
      details: { path: file.path },
    });
  }
  let parent = directory;
  for (const part of parts.slice(0, -1)) {
    parent = join(parent, part);
    await mkdir(parent, { recursive: true });
    await chmod(parent, 0o755);
  }
  const path = join(directory, file.path);
  // A running sandbox may be reading the former one; a rename leaves that whole.
  const temporary = join(dirname(directory), `.incoming-${randomBytes(6).toString("hex")}`);
  try {
    await writeContent(temporary, file, signal);
    await chmod(temporary, file.executable === true ? 0o755 : 0o644);
    await rename(temporary, path);
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

async function writeContent(path: string, file: RunFile, signal: AbortSignal | undefined): Promise<void> {
  const target = await open(path, "w", 0o600);
  try {
    for await (const chunk of file.content()) {
      signal?.throwIfAborted();
      await target.writeFile(chunk);
    }
  } finally {
    await target.close();
  }
}
