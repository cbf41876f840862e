import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { AidoError } from "@aido/sdk/protocol";
import { findProgram } from "./find-program.ts";

const INSTALL_LIMIT_MS = 300_000;

export interface PackageOptions {
  /** The caller's PATH. */
  searchPath: string;
  isRoot: boolean;
  onProgress?: ((step: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Makes a program of the host available: found, or installed where that can be done without asking (root on Debian
 * and its descendants), or refused with the line to type.
 */
export async function ensureProgram(
  wanted: { program: string; package: string; within: string },
  options: PackageOptions,
): Promise<string> {
  const found = findProgram(wanted.program, wanted.within);
  if (found !== undefined) return found;
  const aptGet = findProgram("apt-get", options.searchPath);
  if (!options.isRoot || aptGet === undefined) throw missing(wanted);

  options.onProgress?.(`Installing ${wanted.package}`);
  // A machine that was never updated knows no packages at all.
  if (!existsSync("/var/lib/apt/lists/lock")) await apt(aptGet, ["update"], wanted, options);
  await apt(aptGet, ["install", "-y", "--no-install-recommends", wanted.package], wanted, options).catch(
    async () => {
      // Lists that are too old name package files that the mirror no longer has.
      await apt(aptGet, ["update"], wanted, options);
      await apt(aptGet, ["install", "-y", "--no-install-recommends", wanted.package], wanted, options);
    },
  );
  const installed = findProgram(wanted.program, wanted.within);
  if (installed === undefined) throw missing(wanted);
  return installed;
}

function apt(
  program: string,
  command: readonly string[],
  wanted: { program: string; package: string },
  options: PackageOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      ["-qq", "-o", "DPkg::Lock::Timeout=60", ...command],
      {
        env: { PATH: options.searchPath, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" },
        timeout: INSTALL_LIMIT_MS,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (error, _stdout, stderr) => {
        if (error === null) resolve();
        else if (options.signal?.aborted) reject(error);
        else reject(missing(wanted, stderr.trim().split("\n").at(-1)));
      },
    );
  });
}

function missing(wanted: { program: string; package: string }, cause?: string): AidoError {
  const isSandboxing = wanted.program === "bwrap";
  return new AidoError(
    isSandboxing ? "RUNTIME_UNAVAILABLE" : "IMAGE_NOT_FOUND",
    isSandboxing
      ? "The local driver needs bubblewrap, and `bwrap` is not installed"
      : `The local driver runs the host's own programs, and ${wanted.program} is not installed under /usr`,
    {
      hint: `Type \`sudo apt-get install ${wanted.package}\` (or your distribution's command), or start Docker.`,
      ...(cause === undefined ? {} : { details: { aptGet: cause } }),
    },
  );
}
