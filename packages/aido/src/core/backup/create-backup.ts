import { existsSync } from "node:fs";
import { mkdtemp, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { DataDir } from "../data-dir.ts";
import { type BackupManifest, MANIFEST } from "./manifest.ts";
import { runTar } from "./run-tar.ts";

export interface BackupOptions {
  dataDir: DataDir;
  /** A `.gz` or `.tgz` is compressed. */
  file: string;
  /** Writes a copy of the database as it is at one moment. */
  copyDatabase: (file: string) => Promise<void>;
  aidoVersion: string;
  now: Date;
  signal?: AbortSignal;
}

export interface Backup {
  file: string;
  bytes: number;
  /** Files of sandboxes that could not be read. */
  skipped: number;
}

const PARTS = ["server.key", "evidence", "sandboxes", "workspaces", "local"];
/** Sockets of supervisors, and what the driver found out about this machine: they mean nothing elsewhere. `local/.images` does. */
const LEFT_OUT = ["sandboxes/*/run/*", "local/*/run/*", "local/.[!i]*"];
const QUIET = ["file-changed", "file-removed", "file-ignored", "failed-read"];

/**
 * The data directory as one file, while it is in use. The database comes first: logs that have grown since end beyond
 * what it knows, which is what a crash leaves too. What sandboxes wrote is archived without following a link.
 */
export async function createBackup(options: BackupOptions): Promise<Backup> {
  const { dataDir } = options;
  const root = resolve(dataDir.root);
  const file = resolve(options.file);
  if (!existsSync(dataDir.database)) {
    throw new AidoError("RESOURCE_NOT_FOUND", `There is nothing to back up: ${root} holds no data of aido`, {
      hint: "Name the data directory with --data-dir.",
    });
  }
  if (file.startsWith(`${root}/`)) {
    throw new AidoError("INVALID_PATH", "A backup cannot lie in the data directory it is a backup of");
  }
  if (existsSync(file)) {
    throw new AidoError("FILE_EXISTS", `${file} is there already`, { hint: "Choose another name." });
  }
  const staging = await mkdtemp(join(root, ".backup-"));
  const partial = `${file}.partial`;
  try {
    const manifest: BackupManifest = {
      format: "aido-backup",
      version: 1,
      aidoVersion: options.aidoVersion,
      createdAt: options.now.toISOString(),
      root,
    };
    await writeFile(join(staging, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    await options.copyDatabase(join(staging, "aido.db"));
    // It holds tokens and all that sandboxes wrote.
    await (await openNew(partial)).close();
    const { skipped } = await runTar(
      archiveArguments(root, staging, partial, isCompressed(file)),
      options.signal,
    );
    await sync(partial);
    await rename(partial, file);
    await sync(dirname(file));
    return { file, bytes: (await stat(file)).size, skipped };
  } catch (thrown) {
    await rm(partial, { force: true });
    throw thrown;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function archiveArguments(root: string, staging: string, file: string, compress: boolean): string[] {
  const parts = PARTS.filter((part) => existsSync(join(root, part)));
  return [
    "--create",
    ...(compress ? ["--gzip"] : []),
    `--file=${file}`,
    "--format=posix",
    "--numeric-owner",
    "--sparse",
    "--ignore-failed-read",
    "--anchored",
    "--no-wildcards-match-slash",
    ...LEFT_OUT.map((pattern) => `--exclude=${pattern}`),
    ...QUIET.map((name) => `--warning=no-${name}`),
    `--directory=${staging}`,
    MANIFEST,
    "aido.db",
    // tar refuses a directory that nothing is taken from.
    ...(parts.length === 0 ? [] : [`--directory=${root}`, ...parts]),
  ];
}

function isCompressed(file: string): boolean {
  return file.endsWith(".gz") || file.endsWith(".tgz");
}

async function openNew(file: string): ReturnType<typeof open> {
  await rm(file, { force: true });
  return await open(file, "wx", 0o600);
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
