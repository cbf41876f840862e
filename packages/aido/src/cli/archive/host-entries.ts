import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { access, lstat, open, opendir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { isInnerTarget } from "./safe-name.ts";
import type { NewTarEntry } from "./write-tar.ts";

export interface HostEntries {
  /** Called for what is left out. */
  onSkip: (name: string, why: string) => void;
  onFile: (bytes: number) => void;
}

/** Node's types know no names of bytes. */
const BYTES = "buffer" as BufferEncoding;
const REASONS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "it is gone"],
  ["EACCES", "it may not be read"],
]);

/** What lies below a directory of this machine, parents first. Links stay links and are not followed. */
export async function* hostEntries(root: string, report: HostEntries): AsyncGenerator<NewTarEntry> {
  yield* below(root, [], report);
}

async function* below(
  root: string,
  components: readonly string[],
  report: HostEntries,
): AsyncGenerator<NewTarEntry> {
  for await (const { name } of await opendir(join(root, ...components), { encoding: BYTES })) {
    const bytes = name as unknown as Buffer;
    const path = [...components, bytes.toString()];
    if (!isUtf8(bytes)) {
      report.onSkip(path.join("/"), "its name is not UTF-8");
      continue;
    }
    const entry = await toEntry(join(root, ...path), path, report).catch((thrown: NodeJS.ErrnoException) => {
      const why = REASONS.get(thrown.code ?? "");
      if (why === undefined) throw thrown;
      report.onSkip(path.join("/"), why);
    });
    if (!entry) continue;
    yield entry;
    if (entry.type === "directory") yield* below(root, path, report);
  }
}

async function toEntry(
  path: string,
  components: readonly string[],
  report: HostEntries,
): Promise<NewTarEntry | undefined> {
  const name = components.join("/");
  const info = await lstat(path);
  const common = { name, mode: info.mode, size: 0, modifiedAt: info.mtime };
  // What cannot be read is found out before the archive has promised it.
  if (info.isDirectory()) {
    await access(path, constants.R_OK | constants.X_OK);
    return { ...common, type: "directory" };
  }
  if (info.isFile()) {
    await access(path, constants.R_OK);
    report.onFile(info.size);
    return { ...common, type: "file", size: info.size, content: readFile(path) };
  }
  if (!info.isSymbolicLink())
    return void report.onSkip(name, "it is neither a file nor a directory nor a link");
  const target = await readlink(path);
  if (isInnerTarget(target, components.length - 1)) return { ...common, type: "symlink", target };
  return void report.onSkip(name, "it is a link that leads outside the copy");
}

export async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  yield* file.createReadStream() as AsyncIterable<Uint8Array>;
}
