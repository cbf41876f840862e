import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HistoryEntry } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { commitObject, type FileMode, type GitObject, gitObject } from "./git-objects.ts";
import type { GitRepository } from "./git-repository.ts";
import { parseLog, parseTree } from "./parse-git.ts";
import { readContents } from "./read-contents.ts";
import type { ScanRecord } from "./scan-records.ts";
import { fileMode, type WorkspaceReader, WorkspaceScanner } from "./workspace-scanner.ts";
import { WorkspaceTree } from "./workspace-tree.ts";

export const INITIAL_ID = "unknown";
/** A larger file is listed, but its content is not kept. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;
const BATCH_BYTES = 32 * 1024 * 1024;
const BATCH_FILES = 4_096;
const LOG_FORMAT = "%x01%H%x00%ct%x00%B%x00";

export interface Entry {
  execId: string;
  at: Date;
  message: string;
}

/**
 * The history of one workspace. Callers take turns (HistoryService sees to that). The repository is written by us from
 * what the supervisor tells; nothing in the workspace is ever opened by the host.
 */
export class SandboxHistory {
  readonly repository: GitRepository;
  readonly #reader: WorkspaceReader;
  readonly #scanner: WorkspaceScanner;
  readonly tree = new WorkspaceTree();
  #isLoaded = false;

  constructor(repository: GitRepository, reader: WorkspaceReader) {
    this.repository = repository;
    this.#reader = reader;
    this.#scanner = new WorkspaceScanner(reader);
  }

  /** Looks at the workspace and adds an entry when something changed; the exec then stands for the newest entry. */
  async record(entry: Entry): Promise<void> {
    await this.#load();
    const isFirst = this.repository.head() === undefined;
    const changed = await this.#takeChanges();
    if (changed || isFirst) await this.#commit(entry);
    const head = this.repository.head();
    if (head !== undefined) this.#tie(entry.execId, head);
  }

  /** Raises EXECUTION_NOT_FOUND. */
  commitOf(execId: string): string {
    let commit: string | undefined;
    try {
      commit = readFileSync(this.#tiePath(execId), "utf8").trim();
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
    }
    if (commit === undefined || !/^[0-9a-f]{40}$/.test(commit)) {
      throw new AidoError("EXECUTION_NOT_FOUND", `There is no entry for ${execId} in the history`, {
        hint: "The history lists the ids it knows.",
        details: { execId },
      });
    }
    return commit;
  }

  async list(limit: number, signal?: AbortSignal): Promise<readonly HistoryEntry[]> {
    if (this.repository.head() === undefined) return [];
    const args = [
      "log",
      `--max-count=${limit}`,
      `--format=${LOG_FORMAT}`,
      "--name-only",
      "--no-renames",
      "-z",
      "main",
    ];
    return parseLog(await this.repository.git(args, { code: "GIT_HISTORY_FAILED", signal }));
  }

  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    this.repository.init();
    const head = this.repository.head();
    this.tree.clear();
    if (head !== undefined) {
      const listing = await this.repository.git(["ls-tree", "-r", "-z", head], {
        code: "GIT_HISTORY_FAILED",
      });
      for (const file of parseTree(listing))
        this.tree.set(file.path, { mode: file.mode as FileMode, id: file.id });
      // Names that went while nobody looked are found by the first whole scan.
      this.#unseen = new Set([...this.tree.files()].map(([path]) => path));
    }
    this.#isLoaded = true;
  }

  #unseen: Set<string> | undefined;

  async #takeChanges(): Promise<boolean> {
    const { removed, changed } = await this.#scanner.changes();
    let any = false;
    for (const path of removed) any = this.tree.remove(path).length > 0 || any;
    for (const batch of batches(changed)) any = (await this.#takeBatch(batch)) || any;
    if (this.#unseen !== undefined) {
      for (const record of changed) this.#unseen.delete(record.path);
      for (const path of this.#unseen) any = this.tree.remove(path).length > 0 || any;
      this.#unseen = undefined;
    }
    return any;
  }

  async #takeBatch(records: readonly ScanRecord[]): Promise<boolean> {
    const blobs: { record: ScanRecord; blob: GitObject }[] = [];
    const toRead: ScanRecord[] = [];
    for (const record of records) {
      if (record.type === "symlink")
        blobs.push({ record, blob: gitObject("blob", Buffer.from(record.target, "latin1")) });
      else if (record.size > MAX_FILE_BYTES)
        blobs.push({ record, blob: gitObject("blob", placeholder(record.size)) });
      else toRead.push(record);
    }
    let any = false;
    for await (const { record, content } of readContents(this.#reader, toRead, MAX_FILE_BYTES)) {
      // Gone or unreadable since the scan: the next look tells.
      if (content === undefined) any = this.tree.remove(record.path).length > 0 || any;
      else blobs.push({ record, blob: gitObject("blob", content) });
    }
    await this.repository.objects.write(blobs.map(({ blob }) => blob));
    for (const { record, blob } of blobs) {
      any = this.tree.set(record.path, { mode: fileMode(record), id: blob.id }) || any;
    }
    return any;
  }

  async #commit(entry: Entry): Promise<void> {
    const { rootId, objects } = this.tree.changedTrees();
    if (objects.length === 0) objects.push(gitObject("tree", Buffer.alloc(0)));
    const message = `${entry.message}\n\nExecution ID: ${entry.execId}\nTimestamp: ${entry.at.toISOString()}`;
    const commit = commitObject({ tree: rootId, parent: this.repository.head(), at: entry.at, message });
    await this.repository.objects.write([...objects, commit]);
    this.repository.setHead(commit.id);
  }

  #tie(execId: string, commit: string): void {
    mkdirSync(join(this.repository.directory, "execs"), { recursive: true, mode: 0o700 });
    writeFileSync(this.#tiePath(execId), `${commit}\n`, { mode: 0o600 });
  }

  #tiePath(execId: string): string {
    if (!/^[A-Za-z0-9_.-]{1,64}$/.test(execId)) {
      throw new AidoError("EXECUTION_NOT_FOUND", "That is not the id of an execution");
    }
    // The prefix keeps ids such as `..` from being names of directories.
    return join(this.repository.directory, "execs", `exec-${execId}`);
  }
}

/** True for the content that stands for a file too large to keep. */
export function isPlaceholder(content: Buffer): boolean {
  return content.length < 200 && content.toString("latin1").startsWith(PLACEHOLDER_START);
}
const PLACEHOLDER_START = "aido: this file was not kept, it has ";
const placeholder = (size: number): Buffer => Buffer.from(`${PLACEHOLDER_START}${size} bytes\n`);

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
