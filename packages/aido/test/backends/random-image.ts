import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { docker } from "./docker-cli.ts";

/** Pushes an image that no engine has seen before, and leaves it in the registry only. */
export async function pushRandomImage(name: string, bytes: number, host: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "aido-image-"));
  try {
    await writeFile(join(directory, "content"), randomBytes(bytes));
    await promisify(execFile)("tar", ["-C", directory, "-cf", join(directory, "image.tar"), "content"]);
    await docker(["import", join(directory, "image.tar"), name], { host });
    await docker(["push", name], { host });
    await docker(["rmi", name], { host });
  } finally {
    await rm(directory, { recursive: true });
  }
}
