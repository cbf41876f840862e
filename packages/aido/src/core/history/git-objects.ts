import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { storedName } from "./git-names.ts";

export type ObjectType = "blob" | "tree" | "commit";

/** As git writes them in trees. Directories are implied by paths and made by WorkspaceTree. */
export type FileMode = "100644" | "100755" | "120000";

export interface GitObject {
  /** 40 hexadecimal digits. */
  id: string;
  type: ObjectType;
  content: Buffer;
}

export interface TreeEntry {
  /** Bytes of the name as latin1 text: names need not be UTF-8. */
  name: string;
  mode: FileMode | "40000";
  id: string;
}

/** Hashed at a stretch: about a millisecond. */
const HASH_BYTES = 1024 * 1024;
export const EMPTY_TREE_ID = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

export function gitObject(type: ObjectType, content: Buffer): GitObject {
  const id = createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");
  return { id, type, content };
}

/** As `gitObject`, with turns for others in between: a file may be large. */
export async function blobObject(content: Buffer): Promise<GitObject> {
  if (content.length <= HASH_BYTES) return gitObject("blob", content);
  const hash = createHash("sha1").update(`blob ${content.length}\0`);
  for (let at = 0; at < content.length; at += HASH_BYTES) {
    hash.update(content.subarray(at, at + HASH_BYTES));
    await nextTurn();
  }
  return { id: hash.digest("hex"), type: "blob", content };
}

/** Git compares names as if a directory's ended in a slash. */
export function treeObject(entries: readonly TreeEntry[]): GitObject {
  const key = ({ mode, name }: TreeEntry) => (mode === "40000" ? `${storedName(name)}/` : storedName(name));
  const sorted = entries
    .map((entry) => ({ entry, key: key(entry) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const parts: Buffer[] = [];
  for (const { entry } of sorted) {
    parts.push(
      Buffer.from(`${entry.mode} ${storedName(entry.name)}\0`, "latin1"),
      Buffer.from(entry.id, "hex"),
    );
  }
  return gitObject("tree", Buffer.concat(parts));
}

const AUTHOR = "Sandbox User <sandbox@example.com>";

export function commitObject(commit: {
  tree: string;
  parent: string | undefined;
  at: Date;
  message: string;
}): GitObject {
  const who = `${AUTHOR} ${Math.floor(commit.at.getTime() / 1000)} +0000`;
  const lines = [
    `tree ${commit.tree}`,
    ...(commit.parent === undefined ? [] : [`parent ${commit.parent}`]),
    `author ${who}`,
    `committer ${who}`,
    "",
    commit.message,
  ];
  return gitObject("commit", Buffer.from(`${lines.join("\n")}\n`, "utf8"));
}
