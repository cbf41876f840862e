import type { History, HistoryEntry, HistoryFile, HistoryPage } from "../history.ts";

/** The workspace of one sandbox as it was after each exec. */
export class SandboxHistory {
  readonly #sandbox: string;
  readonly #history: History;

  constructor(sandbox: string, history: History) {
    this.#sandbox = sandbox;
    this.#history = history;
  }

  /** Newest first. */
  list(options: HistoryPage = {}): Promise<readonly HistoryEntry[]> {
    return this.#history.list(this.#sandbox, options);
  }

  /** Path to unified diff text. */
  diff(fromExecId: string, toExecId: string): Promise<Readonly<Record<string, string>>> {
    return this.#history.diff(this.#sandbox, fromExecId, toExecId);
  }

  rollback(execId: string): Promise<HistoryEntry> {
    return this.#history.rollback(this.#sandbox, execId);
  }

  tree(execId: string): Promise<readonly HistoryFile[]> {
    return this.#history.tree(this.#sandbox, execId);
  }

  file(execId: string, path: string): Promise<Uint8Array> {
    return this.#history.file(this.#sandbox, execId, path);
  }
}
