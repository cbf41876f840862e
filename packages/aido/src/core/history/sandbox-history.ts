import type { HistoryEntry } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { ChangeTaker } from "./change-taker.ts";
import { commitObject, type FileMode, gitObject } from "./git-objects.ts";
import type { GitRepository } from "./git-repository.ts";
import { KnownEntries } from "./known-entries.ts";
import { LOG_FORMAT, LogReader } from "./log-reader.ts";
import { parseTree } from "./parse-git.ts";
import { loadState, saveState } from "./saved-state.ts";
import { WatchBudget } from "./watch-budget.ts";
import { WorkspaceObserver } from "./workspace-observer.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";
import { WorkspaceTree } from "./workspace-tree.ts";

export const INITIAL_ID = "unknown";
/** Of several processes that record at once each wins in turn. */
const MAX_ATTEMPTS = 16;
/** Of names in one list of entries. */
const MAX_NAMES_BYTES = 8 * 1024 * 1024;

export interface Entry {
  execId: string;
  at: Date;
  message: string;
}

export interface Recorded {
  commitId: string;
  isNew: boolean;
  /** What this look found changed, as latin1 text. */
  files: ReadonlySet<string>;
}

/**
 * The history of one workspace. Callers take turns (HistoryService sees to that). The repository is written by us from
 * what the supervisor tells; nothing in the workspace is ever opened by the host.
 */
export class SandboxHistory {
  readonly repository: GitRepository;
  /** The workspace as it was last seen, which the newest entry has unless another process added it. */
  readonly tree = new WorkspaceTree();
  readonly known = new KnownEntries();
  readonly #observer: WorkspaceObserver;
  readonly #taker: ChangeTaker;
  #isLoaded = false;
  #isSaved = true;
  /** The newest commit and its tree as of our last look at the repository. */
  #head: { commit: string; tree: string } | undefined;

  constructor(repository: GitRepository, reader: WorkspaceReader, budget = new WatchBudget()) {
    this.repository = repository;
    this.#observer = new WorkspaceObserver(reader, this.known, budget);
    this.#taker = new ChangeTaker(repository, reader, this.tree);
  }

  /** Looks at the workspace and adds an entry when something changed; the exec then stands for the newest entry. */
  async record(entry: Entry, signal?: AbortSignal, isQuiet = false): Promise<Recorded> {
    // Without a look at what cannot be kept.
    this.repository.size.mustHaveRoom();
    try {
      await this.#load();
      const changes = await this.#observer.changes(signal, isQuiet);
      if (changes.changed.length > 0 || changes.removed.length > 0) this.#isSaved = false;
      const files = await this.#taker.take(changes, signal);
      return { ...(await this.#commitIfChanged(entry)), files };
    } catch (thrown) {
      // What was seen and what is kept may differ now: begin anew with what the repository has.
      this.#isLoaded = false;
      this.#observer.lose();
      throw thrown;
    }
  }

  /** Raises EXECUTION_NOT_FOUND. */
  commitOf(execId: string): string {
    const commit = this.repository.tied(execId);
    if (commit !== undefined) return commit;
    throw new AidoError(
      "EXECUTION_NOT_FOUND",
      `There is no entry for ${JSON.stringify(execId)} in the history`,
      {
        hint: "The history lists the ids it knows.",
        details: { execId },
      },
    );
  }

  /** Those before the entry of `before`; raises EXECUTION_NOT_FOUND when it has none. */
  async list(
    limit: number,
    { before, signal }: { before?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<readonly HistoryEntry[]> {
    if (before === undefined) return this.#log(this.repository.head(), limit, signal);
    return (await this.#log(this.commitOf(before), limit + 1, signal)).slice(1);
  }

  /** True when this process has seen that there is an entry. */
  get hasBegun(): boolean {
    return this.#head !== undefined;
  }

  /** Keeps what is known of the workspace for the next process. The sandbox may be gone, and its directory with it. */
  close(): void {
    this.#observer.close();
    if (this.#isLoaded && !this.#isSaved && this.repository.exists) {
      saveState(this.repository.directory, this.known, this.tree);
      this.#isSaved = true;
    }
    this.repository.close();
  }

  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    this.repository.init();
    this.#head = undefined;
    if (!loadState(this.repository.directory, this.known, this.tree)) await this.#loadHead();
    this.#isLoaded = true;
  }

  /** Without a saved state: names that went while nobody looked are found because all that is kept is taken for known. */
  async #loadHead(): Promise<void> {
    const commit = this.repository.head();
    if (commit === undefined) return;
    const listing = await this.repository.git(["ls-tree", "-r", "-z", commit], {
      code: "GIT_HISTORY_FAILED",
    });
    for (const file of parseTree(listing)) {
      this.tree.set(file.path, { mode: file.mode as FileMode, id: file.id });
      const type = file.mode === "120000" ? "symlink" : "file";
      this.known.put(file.path, { type, inode: 0n, ctimeNs: 0n, isSettled: false });
      this.#knowParents(file.path);
    }
  }

  #knowParents(path: string): void {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      const parent = path.slice(0, at);
      if (this.known.get(parent) !== undefined) return;
      this.known.put(parent, { type: "directory", inode: 0n, ctimeNs: 0n, isSettled: false });
    }
  }

  async #commitIfChanged(entry: Entry): Promise<{ commitId: string; isNew: boolean }> {
    const { rootId, objects } = this.tree.changedTrees();
    if (objects.length > 0) await this.repository.objects.write(objects);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const head = await this.#newest();
      // Another process was faster; what it has not seen is part of the next entry.
      const tied = this.repository.tied(entry.execId);
      if (tied !== undefined) return { commitId: tied, isNew: false };
      if (head?.tree === rootId) {
        this.repository.tie(entry.execId, head.commit);
        return { commitId: head.commit, isNew: false };
      }
      const message = `${entry.message}\n\nExecution ID: ${entry.execId}\nTimestamp: ${entry.at.toISOString()}`;
      const commit = commitObject({ tree: rootId, parent: head?.commit, at: entry.at, message });
      const empty = this.tree.isEmpty ? [gitObject("tree", Buffer.alloc(0))] : [];
      await this.repository.objects.write([...empty, commit]);
      if (!this.repository.advance(head?.commit, commit.id, entry.execId)) continue;
      this.#head = { commit: commit.id, tree: rootId };
      return { commitId: commit.id, isNew: true };
    }
    throw new AidoError("GIT_COMMIT_FAILED", "Other processes keep adding to this history");
  }

  async #newest(): Promise<{ commit: string; tree: string } | undefined> {
    const commit = this.repository.head();
    if (commit === undefined || this.#head?.commit === commit)
      return commit === undefined ? undefined : this.#head;
    const tree = this.repository.objects.treeOf(commit) ?? (await this.#askTree(commit));
    this.#head = { commit, tree };
    return this.#head;
  }

  async #askTree(commit: string): Promise<string> {
    const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${commit}^{tree}`];
    return (await this.repository.git(args, { code: "GIT_HISTORY_FAILED" })).toString("latin1").trim();
  }

  async #log(
    from: string | undefined,
    limit: number,
    signal: AbortSignal | undefined,
  ): Promise<readonly HistoryEntry[]> {
    if (from === undefined) return [];
    const format = ["-z", "--name-status", "--no-renames", "--root", `--format=${LOG_FORMAT}`];
    const args = ["log", ...format, `--max-count=${limit}`, from];
    const reader = new LogReader(MAX_NAMES_BYTES);
    let problem: unknown;
    const take = (chunk: Buffer): boolean => {
      try {
        reader.push(chunk);
        return true;
      } catch (thrown) {
        problem = thrown;
        return false;
      }
    };
    await this.repository.read(args, { code: "GIT_HISTORY_FAILED", signal }, take);
    if (problem !== undefined) throw problem;
    return reader.entries;
  }
}
