import { constants, type Stats } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import type { Aido } from "@aido/sdk";
import { AidoError, type FileInfo, isAidoError } from "@aido/sdk/protocol";
import { hostEntries, readFile } from "../archive/host-entries.ts";
import { writeTar } from "../archive/write-tar.ts";
import type { Copied } from "./copy.ts";
import { namesDirectory } from "./copy-side.ts";

export interface CopyRequest {
  sandbox: string;
  from: string;
  to: string;
  cwd: string;
}

/** From this machine into a sandbox. A directory that is there receives the copy inside it. */
export async function copyIn(aido: Aido, request: CopyRequest): Promise<Copied> {
  const { sandbox, from, to } = request;
  const source = resolve(request.cwd, from);
  const info = await readable(source).catch((cause: unknown) => {
    throw new AidoError("FILE_NOT_FOUND", `${from} cannot be read`, {
      hint: "Check the path; nothing was copied.",
      details: { path: from },
      cause,
    });
  });
  const there = await find(aido, sandbox, to);
  // `dir/.` means what is in it, as with cp.
  const contents = /(^|\/)\.$/.test(from);
  const inside = there?.type === "directory" || namesDirectory(to);
  const target = inside && !(info.isDirectory() && contents) ? posix.join(to, basename(source)) : to;
  if (info.isDirectory()) return copyDirectory(aido, { sandbox, source, target });
  if (!info.isFile()) {
    throw new AidoError("VALIDATION_ERROR", `${from} is neither a file nor a directory`, {
      hint: "Only files and directories can be copied.",
    });
  }
  await aido.files.write(sandbox, target, readFile(await realpath(source)), { mode: info.mode & 0o777 });
  return { files: 1, bytes: info.size, target: `${sandbox}:${target}`, skipped: [] };
}

async function readable(path: string): Promise<Stats> {
  await access(path, constants.R_OK);
  return stat(path);
}

async function copyDirectory(
  aido: Aido,
  { sandbox, source, target }: { sandbox: string; source: string; target: string },
): Promise<Copied> {
  const skipped: { name: string; why: string }[] = [];
  const count = { files: 0, bytes: 0 };
  await aido.files.mkdir(sandbox, target);
  const entries = hostEntries(source, {
    onSkip: (name, why) => skipped.push({ name, why }),
    onFile: (bytes) => {
      count.files += 1;
      count.bytes += bytes;
    },
  });
  await aido.files.tarIn(sandbox, target, writeTar(entries));
  return { ...count, target: `${sandbox}:${target}`, skipped };
}

async function find(aido: Aido, sandbox: string, path: string): Promise<FileInfo | undefined> {
  try {
    return await aido.files.stat(sandbox, path);
  } catch (thrown) {
    if (isAidoError(thrown, "FILE_NOT_FOUND")) return undefined;
    throw thrown;
  }
}
