/** One entry of a workspace's history, tied to the exec that made it. */
export interface HistoryEntry {
  /** The exec's id; `unknown` for the first entry of a workspace. */
  execId: string;
  /** 40 hexadecimal digits. */
  commitId: string;
  at: Date;
  message: string;
  /** Paths that differ from the entry before. */
  files: readonly string[];
  /** Some paths are left out, because a list of entries holds no more than 8 MiB of them. */
  truncated?: boolean | undefined;
}

export interface HistoryFile {
  path: string;
  /** As git writes it: 100644, 100755 or 120000. */
  mode: string;
  size: number;
}

export interface HistoryPage {
  limit?: number | undefined;
  /** Only entries before the one of this exec: the last of the page before. */
  before?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** The workspace as it was after each exec. Kept outside the sandbox; works on images without git. */
export interface History {
  /** Newest first. */
  list(sandbox: string, page?: HistoryPage): Promise<readonly HistoryEntry[]>;
  /**
   * Path to unified diff text, for every path that differs between the two entries. Raises PAYLOAD_TOO_LARGE when it has
   * more than 8 MiB.
   */
  diff(
    sandbox: string,
    fromExecId: string,
    toExecId: string,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>>;
  /** Writes the old tree back into the running sandbox; later execs see it. */
  rollback(sandbox: string, execId: string, signal?: AbortSignal): Promise<HistoryEntry>;
  tree(sandbox: string, execId: string): Promise<readonly HistoryFile[]>;
  /** A file's content as it was after the exec. */
  file(sandbox: string, execId: string, path: string): Promise<Uint8Array>;
}
