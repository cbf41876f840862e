import { EMPTY_TREE_ID, type FileMode, type GitObject, type TreeEntry, treeObject } from "./git-objects.ts";

export interface TrackedFile {
  mode: FileMode;
  id: string;
}

interface Directory {
  files: Map<string, TrackedFile>;
  directories: Map<string, Directory>;
  /** Undefined when something beneath has changed since it was computed. */
  id: string | undefined;
}

const emptyDirectory = (): Directory => ({ files: new Map(), directories: new Map(), id: undefined });

/**
 * The workspace as the newest entry has it. Changing one file makes only the directories above it be written
 * again, so a commit costs what changed. Paths are latin1 text with slashes. Git keeps no empty directories.
 */
export class WorkspaceTree {
  #root = emptyDirectory();

  get isEmpty(): boolean {
    return this.#root.files.size === 0 && this.#root.directories.size === 0;
  }

  get(path: string): TrackedFile | undefined {
    const { directories, name } = split(path);
    let at: Directory | undefined = this.#root;
    for (const part of directories) at = at?.directories.get(part);
    return at?.files.get(name);
  }

  /** True when that changed anything. A directory in the file's place goes, and a file where a directory must be. */
  set(path: string, file: TrackedFile): boolean {
    const { directories, name } = split(path);
    let at = this.#root;
    const above = [at];
    for (const part of directories) {
      at.files.delete(part);
      let next = at.directories.get(part);
      if (next === undefined) {
        next = emptyDirectory();
        at.directories.set(part, next);
      }
      at = next;
      above.push(at);
    }
    const known = at.files.get(name);
    if (known?.id === file.id && known.mode === file.mode) return false;
    at.directories.delete(name);
    at.files.set(name, file);
    for (const directory of above) directory.id = undefined;
    return true;
  }

  /** Removes a file, or a directory with all beneath it; the paths of the files that went. */
  remove(path: string): string[] {
    const { directories, name } = split(path);
    const above = [this.#root];
    for (const part of directories) {
      const next = above.at(-1)?.directories.get(part);
      if (next === undefined) return [];
      above.push(next);
    }
    const parent = above.at(-1) ?? this.#root;
    const gone: string[] = [];
    if (parent.files.delete(name)) gone.push(path);
    const directory = parent.directories.get(name);
    if (directory !== undefined) {
      gone.push(...[...filesOf(directory, path)].map(([found]) => found));
      parent.directories.delete(name);
    }
    if (gone.length > 0) for (const changed of above) changed.id = undefined;
    this.#prune(above, directories);
    return gone;
  }

  /** The directory's tree object, when nothing beneath it has changed since it was written; empty for the root. */
  writtenId(path: string): string | undefined {
    return this.#directory(path)?.id;
  }

  /** Its tree object is known to be written. */
  setWritten(path: string, id: string): void {
    const directory = this.#directory(path);
    if (directory !== undefined) directory.id = id;
  }

  *files(): Generator<[path: string, file: TrackedFile]> {
    yield* filesOf(this.#root, "");
  }

  clear(): void {
    this.#root = emptyDirectory();
  }

  /** Tree objects that are not written yet, children first; the last one is the root unless nothing changed. */
  changedTrees(): { rootId: string; objects: GitObject[] } {
    const objects: GitObject[] = [];
    return { rootId: write(this.#root, objects) ?? EMPTY_TREE_ID, objects };
  }

  #directory(path: string): Directory | undefined {
    let at: Directory | undefined = this.#root;
    for (const part of path === "" ? [] : path.split("/")) at = at?.directories.get(part);
    return at;
  }

  #prune(above: readonly Directory[], names: readonly string[]): void {
    for (let depth = names.length - 1; depth >= 0; depth--) {
      const directory = above[depth + 1];
      const name = names[depth];
      if (directory === undefined || name === undefined) return;
      if (directory.files.size > 0 || directory.directories.size > 0) return;
      above[depth]?.directories.delete(name);
    }
  }
}

function write(directory: Directory, objects: GitObject[]): string | undefined {
  if (directory.files.size === 0 && directory.directories.size === 0) return undefined;
  if (directory.id !== undefined) return directory.id;
  const entries: TreeEntry[] = [];
  for (const [name, file] of directory.files) entries.push({ name, mode: file.mode, id: file.id });
  for (const [name, child] of directory.directories) {
    const id = write(child, objects);
    if (id !== undefined) entries.push({ name, mode: "40000", id });
  }
  if (entries.length === 0) return undefined;
  const tree = treeObject(entries);
  objects.push(tree);
  directory.id = tree.id;
  return tree.id;
}

function* filesOf(directory: Directory, path: string): Generator<[string, TrackedFile]> {
  const prefix = path === "" ? "" : `${path}/`;
  for (const [name, file] of directory.files) yield [`${prefix}${name}`, file];
  for (const [name, child] of directory.directories) yield* filesOf(child, `${prefix}${name}`);
}

function split(path: string): { directories: string[]; name: string } {
  const directories = path.split("/");
  const name = directories.pop() ?? "";
  return { directories, name };
}
