/** Files that outlive the sandboxes which have them as their working directory, one at a time. */
export interface WorkspaceInfo {
  name: string;
  /** Whose it is: `anonymous` where no key is asked for. */
  owner: string;
  /** The sandbox that has it now; undefined when it is free. */
  sandboxId: string | undefined;
  createdAt: Date;
  /** When a sandbox took it or let go of it. */
  lastUsedAt: Date;
  /** When it is removed unless a sandbox takes it; undefined while one has it, or when it is kept for ever. */
  expiresAt: Date | undefined;
}

export interface WorkspaceFilter {
  /** One's own when absent; another's are for administrators. */
  owner?: string | undefined;
  /** Of every owner; for administrators. */
  all?: boolean | undefined;
}

/** A sandbox is given one by its name at `create`; a name that is new makes one. */
export interface Workspaces {
  /** By name. */
  list(filter?: WorkspaceFilter): Promise<readonly WorkspaceInfo[]>;
  /** With all it holds. Raises WORKSPACE_IN_USE while a sandbox has it. */
  remove(name: string, options?: { owner?: string | undefined }): Promise<void>;
}
