export interface WorkspaceRecord {
  id: string;
  owner: string;
  /** Unique among those of its owner. */
  name: string;
  /** The sandbox it is mounted in, or was when that came to an end without a word. */
  sandboxId: string | undefined;
  createdAt: Date;
  /** When a sandbox took it or let go of it. */
  lastUsedAt: Date;
}

/** Which workspaces there are and who has them. One has one sandbox at most. */
export interface WorkspaceStore {
  get(owner: string, name: string): Promise<WorkspaceRecord | undefined>;
  /** By name, of one owner or of all. */
  list(owner?: string): Promise<readonly WorkspaceRecord[]>;
  /** False when the owner has one of this name. Raises QUOTA_EXCEEDED at `most` of one owner; 0 is no limit. */
  insert(record: WorkspaceRecord, most: number): Promise<boolean>;
  /** False unless it is still `holder`'s. */
  take(id: string, holder: string | undefined, sandboxId: string, at: Date): Promise<boolean>;
  /** Only what is the sandbox's: one workspace, or all. */
  release(sandboxId: string, at: Date, id?: string): Promise<void>;
  /** False unless it is still `holder`'s. */
  remove(id: string, holder: string | undefined): Promise<boolean>;
  /** Not taken or let go of since then, those for longest first, and after that one; cost grows with what is due. */
  unusedSince(
    at: Date,
    limit: number,
    after?: Pick<WorkspaceRecord, "id" | "lastUsedAt">,
  ): Promise<readonly WorkspaceRecord[]>;
}
