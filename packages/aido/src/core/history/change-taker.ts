import { blobObject, type GitObject, gitObject } from "./git-objects.ts";
import type { GitRepository } from "./git-repository.ts";
import { readContents } from "./read-contents.ts";
import type { ScanRecord } from "./scan-records.ts";
import { fileMode, type WorkspaceChanges, type WorkspaceReader } from "./workspace-scanner.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

/** A larger file is listed, but its content is not kept. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;
const BATCH_BYTES = 32 * 1024 * 1024;
const BATCH_FILES = 4_096;

/** Brings changes of the workspace into the tree, reading what must be read and writing its objects. */
export class ChangeTaker {
  readonly #repository: GitRepository;
  readonly #reader: WorkspaceReader;
  readonly #tree: WorkspaceTree;

  constructor(repository: GitRepository, reader: WorkspaceReader, tree: WorkspaceTree) {
    this.#repository = repository;
    this.#reader = reader;
    this.#tree = tree;
  }

  /** The paths of the files that are other than they were, or gone. */
  async take({ removed, changed }: WorkspaceChanges, signal?: AbortSignal): Promise<ReadonlySet<string>> {
    const files = new Set<string>();
    for (const path of removed) for (const gone of this.#tree.remove(path)) files.add(gone);
    for (const batch of batches(changed)) {
      for (const path of await this.#takeBatch(batch, signal)) files.add(path);
    }
    return files;
  }

  async #takeBatch(
    records: readonly ScanRecord[],
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const files: string[] = [];
    const blobs: { record: ScanRecord; blob: GitObject }[] = [];
    const toRead: ScanRecord[] = [];
    for (const record of records) {
      if (record.type === "symlink")
        blobs.push({ record, blob: gitObject("blob", Buffer.from(record.target, "latin1")) });
      else if (record.content !== undefined) blobs.push({ record, blob: await blobObject(record.content) });
      else if (record.size > MAX_FILE_BYTES) blobs.push({ record, blob: this.#standIn(record.size) });
      else toRead.push(record);
    }
    for await (const read of readContents(this.#reader, toRead, MAX_FILE_BYTES, signal)) {
      const { record, content, size } = read;
      if (content !== undefined) blobs.push({ record, blob: await blobObject(content) });
      else if (size > MAX_FILE_BYTES) blobs.push({ record, blob: this.#standIn(size) });
      // Gone or unreadable: not part of what can be kept. When that ends, its change time tells.
      else files.push(...this.#tree.remove(record.path));
    }
    await this.#repository.objects.write(blobs.map(({ blob }) => blob));
    for (const { record, blob } of blobs) {
      if (this.#tree.set(record.path, { mode: fileMode(record), id: blob.id })) files.push(record.path);
    }
    return files;
  }

  #standIn(size: number): GitObject {
    return gitObject("blob", Buffer.from(`${this.#repository.standInStart}${size} bytes\n`));
  }
}

function* batches(records: readonly ScanRecord[]): Generator<ScanRecord[]> {
  let batch: ScanRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    batch.push(record);
    bytes += Math.min(record.size, MAX_FILE_BYTES);
    if (bytes < BATCH_BYTES && batch.length < BATCH_FILES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
