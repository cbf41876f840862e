/** Who asked for what, and what came of it. Survives the sandbox it is about. */
export interface AuditEntry {
  requestId: string;
  operation: string;
  owner: string;
  name: string;
  sandbox: string | undefined;
  status: number;
  code: string | undefined;
  at: Date;
}

export interface StoredAuditEntry extends AuditEntry {
  id: number;
}

export interface AuditQuery {
  owner?: string | undefined;
  sandbox?: string | undefined;
  /** Only what was done, not what was refused. */
  succeeded?: boolean | undefined;
  /** Only entries older than the one with this id. */
  before?: number | undefined;
  limit: number;
}

export interface AuditStore {
  /** All or none. */
  append(entries: readonly AuditEntry[]): Promise<void>;
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly StoredAuditEntry[]>;
}
