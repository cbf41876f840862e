import { AidoError } from "@aido/sdk/protocol";
import { HostTree } from "./host-tree.ts";
import { readTar } from "./read-tar.ts";
import { isInnerTarget, safeComponents } from "./safe-name.ts";
import type { TarEntry } from "./tar-entry.ts";

export interface Extracted {
  files: number;
  bytes: number;
  /** What the archive holds but does not come out of it, and why. */
  skipped: readonly { name: string; why: string }[];
}

const MOST_SKIPPED = 1000;
/** Files that further names can be made for. */
const MOST_LINKED = 200_000;

/**
 * Unpacks an archive that hostile code may have written. Names that could lead outside `root` end it; links that
 * lead outside, devices and the like are left out and reported; owners and special bits are not kept.
 */
export async function extractTar(archive: AsyncIterable<Uint8Array>, root: string): Promise<Extracted> {
  await using tree = await HostTree.open(root);
  const skipped: { name: string; why: string }[] = [];
  const skip = (name: string, why: string) => {
    if (skipped.length < MOST_SKIPPED) skipped.push({ name, why });
  };
  /** Of what is there beside the copy no further names are made. */
  const made = new Set<string>();
  let files = 0;
  let bytes = 0;
  for await (const entry of readTar(archive)) {
    const components = safeComponents(entry.name);
    if (components === undefined) throw refused(entry.name, "its name leads outside the target");
    const why = reasonToSkip(entry, components);
    if (why !== undefined) {
      skip(entry.name, why);
      continue;
    }
    if (entry.type === "hardlink" && !made.has(keyOf(safeComponents(entry.target)))) {
      skip(entry.name, "it is another name of a file that is not in the copy");
      continue;
    }
    if (components.length > 0) await put(tree, entry, components);
    // A link by another name would lead from another place.
    if (entry.type === "symlink") made.delete(keyOf(components));
    if (entry.type !== "file" && entry.type !== "hardlink") continue;
    if (made.size < MOST_LINKED) made.add(keyOf(components));
    files += 1;
    bytes += entry.type === "file" ? entry.size : 0;
  }
  return { files, bytes, skipped };
}

function reasonToSkip(entry: TarEntry, components: readonly string[]): string | undefined {
  // As text, two names that differ would be one.
  if (!entry.isText) return "its name is not UTF-8";
  if (entry.type === "other") return "it is neither a file nor a directory nor a link";
  if (components.length === 0) return entry.type === "directory" ? undefined : "it has no name";
  if (entry.type === "symlink" && !isInnerTarget(entry.target, components.length - 1)) {
    return "it is a link that leads outside the copy";
  }
  return undefined;
}

const keyOf = (components: readonly string[] = []): string => components.join("/");

async function put(tree: HostTree, entry: TarEntry, components: readonly string[]): Promise<void> {
  try {
    if (entry.type === "directory") await tree.directory(components, entry.mode);
    else if (entry.type === "symlink") await tree.link(components, entry.target);
    else if (entry.type === "hardlink") await tree.sameFile(components, safeComponents(entry.target) ?? []);
    else {
      await tree.file(components, { mode: entry.mode, modifiedAt: entry.modifiedAt, content: entry.body });
    }
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    if (code === "ELOOP" || code === "ENOTDIR")
      throw refused(entry.name, "a part of its path is not a directory");
    if (code === "EISDIR" || code === "ENOTEMPTY" || code === "EEXIST") {
      throw refused(entry.name, "something else of that name is there");
    }
    throw thrown;
  }
}

function refused(name: string, why: string): AidoError {
  return new AidoError("INVALID_PATH", `${JSON.stringify(name)} was not copied: ${why}`, {
    hint: "What was copied before it is in the target; nothing outside the target was touched.",
    details: { name },
  });
}
