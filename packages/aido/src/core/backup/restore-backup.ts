import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { DataDir } from "../data-dir.ts";
import { removeTree } from "../sandbox/remove-tree.ts";
import { type BackupManifest, MANIFEST, readManifest } from "./manifest.ts";
import { runTar } from "./run-tar.ts";

export interface RestoreOptions {
  file: string;
  dataDir: DataDir;
  /** Makes what was restored fit for this place: nothing of it runs here. */
  settle: (moved: { from: string; to: string }) => Promise<number>;
  signal?: AbortSignal;
}

export interface Restored {
  dataDir: string;
  createdAt: string;
  sandboxes: number;
  /** Files of sandboxes that could not be written here. */
  skipped: number;
}

/** Into an empty directory only. What fails leaves it empty. */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const file = resolve(options.file);
  const root = resolve(options.dataDir.root);
  const manifest = await manifestOf(file, options.signal);
  await mkdir(root, { recursive: true, mode: 0o700 });
  if ((await readdir(root)).length > 0) {
    throw new AidoError("FILE_EXISTS", `${root} is not empty`, {
      hint: "Restore into an empty directory: name one with --data-dir.",
    });
  }
  await chmod(root, 0o700);
  try {
    const { skipped } = await runTar(
      ["--extract", `--file=${file}`, "--numeric-owner", `--directory=${root}`],
      options.signal,
    );
    await rm(join(root, MANIFEST));
    const sandboxes = await options.settle({ from: manifest.root, to: root });
    return { dataDir: root, createdAt: manifest.createdAt, sandboxes, skipped };
  } catch (thrown) {
    for (const name of await readdir(root)) await removeTree(join(root, name));
    throw thrown;
  }
}

async function manifestOf(file: string, signal: AbortSignal | undefined): Promise<BackupManifest> {
  const argv = ["--extract", "--to-stdout", "--occurrence=1", `--file=${file}`, MANIFEST];
  const { stdout } = await runTar(argv, signal).catch((cause: unknown) => {
    throw new AidoError("VALIDATION_ERROR", `${file} is not a backup that can be read`, { cause });
  });
  return readManifest(stdout, file);
}
