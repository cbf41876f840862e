import { mkdir, stat } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { extractTar } from "../archive/extract-tar.ts";
import { HostTree } from "../archive/host-tree.ts";
import { safeComponents } from "../archive/safe-name.ts";
import type { Copied } from "./copy.ts";
import type { CopyRequest } from "./copy-in.ts";
import { namesDirectory } from "./copy-side.ts";

/** From a sandbox to this machine. Names come from the user's own words, never from the sandbox's. */
export async function copyOut(aido: Aido, request: CopyRequest): Promise<Copied> {
  const { sandbox, from, to, cwd } = request;
  const info = await aido.files.stat(sandbox, from);
  const target = await landing(resolve(cwd, to), namesDirectory(to), from);
  if (info.type === "directory") {
    await mkdir(target, { recursive: true });
    const extracted = await extractTar(aido.files.tarOut(sandbox, from), target);
    return { ...extracted, target };
  }
  if (info.type === "other") {
    throw new AidoError("VALIDATION_ERROR", `${from} is neither a file nor a directory`, {
      hint: "Only files and directories can be copied.",
    });
  }
  await using tree = await HostTree.open(dirname(target)).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "ENOENT" && cause.code !== "ENOTDIR") throw cause;
    throw new AidoError("FILE_NOT_FOUND", `The directory ${dirname(target)} is not there`, {
      hint: "Make it first; nothing was copied.",
      cause,
    });
  });
  const count = { bytes: 0 };
  await tree.file([basename(target)], {
    mode: info.mode,
    content: counted(aido.files.read(sandbox, from), count),
  });
  return { files: 1, bytes: count.bytes, target, skipped: [] };
}

/** Where the copy lands: in a directory that is there, or under the name that was typed. */
async function landing(path: string, writtenAsDirectory: boolean, from: string): Promise<string> {
  const there = await stat(path).catch(() => undefined);
  if (writtenAsDirectory && !there?.isDirectory()) {
    throw new AidoError("FILE_NOT_FOUND", `The directory ${path} is not there`, {
      hint: "Make it first; nothing was copied.",
    });
  }
  if (!there?.isDirectory() || /(^|\/)\.$/.test(from)) return path;
  const [name, ...more] = safeComponents(posix.basename(posix.normalize(`/${from}`))) ?? [];
  return name === undefined || more.length > 0 ? path : join(path, name);
}

async function* counted(
  source: AsyncIterable<Uint8Array>,
  count: { bytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    count.bytes += chunk.length;
    yield chunk;
  }
}
