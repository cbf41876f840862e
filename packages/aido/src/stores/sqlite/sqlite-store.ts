import type { Store } from "../../core/store/store.ts";
import { SqliteAgentSessions } from "./sqlite-agent-sessions.ts";
import { SqliteApiKeys } from "./sqlite-api-keys.ts";
import { SqliteAudit } from "./sqlite-audit.ts";
import { SqliteBatches } from "./sqlite-batches.ts";
import { SqliteClaims } from "./sqlite-claims.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteCounters } from "./sqlite-counters.ts";
import { SqliteEvidenceHeads } from "./sqlite-evidence-heads.ts";
import { SqliteExecs } from "./sqlite-execs.ts";
import { SqliteIdempotency } from "./sqlite-idempotency.ts";
import { SqliteJobs } from "./sqlite-jobs.ts";
import { SqliteLeases } from "./sqlite-leases.ts";
import { SqlitePool } from "./sqlite-pool.ts";
import { SqliteRuns } from "./sqlite-runs.ts";
import { SqliteSandboxes } from "./sqlite-sandboxes.ts";
import { SqliteSshKeys } from "./sqlite-ssh-keys.ts";
import { SqliteWorkflows } from "./sqlite-workflows.ts";
import { SqliteWorkspaces } from "./sqlite-workspaces.ts";

/** While it waits, the whole process does. */
const PROBE_WAIT_MS = 250;

/** Records in one SQLite file, safe for several processes at once. */
export class SqliteStore implements Store {
  readonly sandboxes: SqliteSandboxes;
  readonly execs: SqliteExecs;
  readonly runs: SqliteRuns;
  readonly claims: SqliteClaims;
  readonly agentSessions: SqliteAgentSessions;
  readonly leases: SqliteLeases;
  readonly evidence: SqliteEvidenceHeads;
  readonly counters: SqliteCounters;
  readonly jobs: SqliteJobs;
  readonly batches: SqliteBatches;
  readonly workflows: SqliteWorkflows;
  readonly apiKeys: SqliteApiKeys;
  readonly audit: SqliteAudit;
  readonly idempotency: SqliteIdempotency;
  readonly pool: SqlitePool;
  readonly sshKeys: SqliteSshKeys;
  readonly workspaces: SqliteWorkspaces;
  readonly #connection: SqliteConnection;

  /** Raises DATA_DIR_NOT_WRITABLE, DISK_FULL, STORE_TOO_NEW or STORE_UNAVAILABLE. */
  constructor(file: string, options: { busyMs?: number } = {}) {
    this.#connection = new SqliteConnection(file, options.busyMs);
    this.sandboxes = new SqliteSandboxes(this.#connection);
    this.execs = new SqliteExecs(this.#connection);
    this.runs = new SqliteRuns(this.#connection);
    this.claims = new SqliteClaims(this.#connection);
    this.agentSessions = new SqliteAgentSessions(this.#connection);
    this.leases = new SqliteLeases(this.#connection);
    this.apiKeys = new SqliteApiKeys(this.#connection);
    this.audit = new SqliteAudit(this.#connection);
    this.idempotency = new SqliteIdempotency(this.#connection);
    this.pool = new SqlitePool(this.#connection, this.sandboxes);
    this.evidence = new SqliteEvidenceHeads(this.#connection);
    this.counters = new SqliteCounters(this.#connection);
    this.jobs = new SqliteJobs(this.#connection);
    this.batches = new SqliteBatches(this.#connection);
    this.workflows = new SqliteWorkflows(this.#connection);
    this.sshKeys = new SqliteSshKeys(this.#connection);
    this.workspaces = new SqliteWorkspaces(this.#connection);
  }

  /** Raises DISK_FULL or STORE_UNAVAILABLE when it cannot be written to now. */
  probe(): void {
    this.#connection.probe(PROBE_WAIT_MS);
  }

  /** A copy as it is at one moment, while others read and write. The file must not exist. */
  copyTo(file: string): void {
    this.#connection.run("VACUUM INTO ?", file);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }
}
