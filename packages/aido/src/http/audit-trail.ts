/** Who asked for what, and what came of it. Survives the sandbox it is about. */
export interface AuditEntry {
  requestId: string;
  operation: string;
  owner: string;
  name: string;
  sandbox: string | undefined;
  status: number;
  code: string | undefined;
}

export interface StoredAuditEntry extends AuditEntry {
  id: number;
  at: Date;
}

export interface AuditTrail {
  /** Returns at once; entries are written in batches and flushed at the end. */
  record(entry: AuditEntry): void;
  /** Newest first; `before` is an entry's id. */
  list(query: {
    owner?: string;
    sandbox?: string;
    before?: number;
    limit: number;
  }): Promise<readonly StoredAuditEntry[]>;
}
