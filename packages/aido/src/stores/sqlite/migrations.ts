/**
 * Each entry is applied once, in order, and never changed afterwards. `seq` is the order of insertion: two
 * sandboxes made in the same millisecond still have an order, and pages need no sort.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sandboxes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    profile TEXT NOT NULL,
    image TEXT NOT NULL,
    driver TEXT NOT NULL,
    isolation TEXT NOT NULL,
    state TEXT NOT NULL,
    end_reason TEXT,
    container_id TEXT,
    workdir TEXT NOT NULL,
    user TEXT,
    env TEXT NOT NULL,
    network TEXT NOT NULL,
    limits TEXT NOT NULL,
    privileged INTEGER NOT NULL,
    history INTEGER NOT NULL,
    labels TEXT NOT NULL,
    mounts TEXT NOT NULL,
    ttl_ms INTEGER NOT NULL,
    supervisor_token TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    stopped_at INTEGER,
    expires_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX sandboxes_name ON sandboxes (name) WHERE state <> 'deleted';
  CREATE INDEX sandboxes_state ON sandboxes (state, seq);
  CREATE INDEX sandboxes_live_id ON sandboxes (id) WHERE state <> 'deleted';
  CREATE INDEX sandboxes_due ON sandboxes (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('running', 'stopped');

  CREATE TABLE sandbox_labels (
    seq INTEGER NOT NULL REFERENCES sandboxes (seq) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (seq, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sandbox_labels_page ON sandbox_labels (key, value, state, seq);
  CREATE TRIGGER sandbox_labels_state AFTER UPDATE OF state ON sandboxes BEGIN
    UPDATE sandbox_labels SET state = new.state WHERE seq = new.seq;
  END;

  CREATE TABLE execs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    argv TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code INTEGER,
    signal TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    stdout_bytes INTEGER NOT NULL,
    stderr_bytes INTEGER NOT NULL,
    UNIQUE (sandbox_id, id)
  ) STRICT;
  CREATE INDEX execs_page ON execs (sandbox_id, seq);
  CREATE INDEX execs_running ON execs (sandbox_id, seq) WHERE status = 'running';

  CREATE TABLE runs (
    sandbox_id TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    task TEXT NOT NULL,
    exec_id TEXT,
    auto_destroy INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE claims (
    sandbox_id TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    purpose TEXT NOT NULL,
    until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE evidence_heads (
    sandbox_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    sandbox TEXT,
    status INTEGER NOT NULL,
    code TEXT,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX audit_owner ON audit (owner, id);
  CREATE INDEX audit_sandbox ON audit (sandbox, id) WHERE sandbox IS NOT NULL;

  CREATE TABLE kept_answers (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER,
    body TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX kept_answers_at ON kept_answers (at);
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN image_env TEXT NOT NULL DEFAULT '{}';
  `,
  `
  CREATE TABLE pool (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    holder TEXT NOT NULL,
    is_ready INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO counters (name, value)
    VALUES ('peak_sandboxes', (SELECT count(*) FROM sandboxes WHERE state = 'running'));
  CREATE TRIGGER sandboxes_peak_insert AFTER INSERT ON sandboxes WHEN new.state = 'running' BEGIN
    UPDATE counters SET value = max(value, (SELECT count(*) FROM sandboxes WHERE state = 'running'))
      WHERE name = 'peak_sandboxes';
  END;
  CREATE TRIGGER sandboxes_peak_update AFTER UPDATE OF state ON sandboxes
    WHEN new.state = 'running' AND old.state <> 'running' BEGIN
    UPDATE counters SET value = max(value, (SELECT count(*) FROM sandboxes WHERE state = 'running'))
      WHERE name = 'peak_sandboxes';
  END;

  CREATE TABLE running_jobs (
    id TEXT PRIMARY KEY,
    job INTEGER NOT NULL,
    holder TEXT NOT NULL,
    started_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN idle_timeout_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN last_activity_at INTEGER NOT NULL DEFAULT 0;
  UPDATE sandboxes SET last_activity_at = coalesce(stopped_at, started_at, created_at);
  CREATE INDEX sandboxes_idle ON sandboxes (last_activity_at + idle_timeout_ms)
    WHERE state = 'running' AND idle_timeout_ms > 0;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN token_hash TEXT;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN tier TEXT;
  ALTER TABLE sandboxes ADD COLUMN tier_since INTEGER;
  ALTER TABLE sandboxes ADD COLUMN warm_image TEXT;
  ALTER TABLE sandboxes ADD COLUMN warm_is_stale INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN snapshot_url TEXT;
  ALTER TABLE sandboxes ADD COLUMN snapshot_sha256 TEXT;
  ALTER TABLE sandboxes ADD COLUMN snapshot_is_stale INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sandboxes ADD COLUMN snapshot_destination TEXT;
  UPDATE sandboxes SET tier = 'hot', tier_since = coalesce(stopped_at, created_at)
    WHERE state = 'stopped' AND container_id IS NOT NULL;
  CREATE INDEX sandboxes_tier ON sandboxes (tier, tier_since, id) WHERE tier IS NOT NULL;
  CREATE INDEX sandboxes_tier_own ON sandboxes (tier, tier_since, id)
    WHERE tier IS NOT NULL AND snapshot_destination IS NOT NULL;
  `,
  `
  CREATE TABLE batches (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    holder TEXT NOT NULL,
    state TEXT NOT NULL,
    count INTEGER NOT NULL,
    aggregate TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX batches_owner ON batches (owner, seq);
  CREATE INDEX batches_running ON batches (seq) WHERE state = 'running';
  CREATE INDEX batches_expired ON batches (expires_at) WHERE state <> 'running';

  CREATE TABLE batch_items (
    batch_seq INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (batch_seq, position)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE agent_sessions (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    reference TEXT,
    run_id TEXT,
    run_until INTEGER,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox_id, session_id)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE ssh_keys (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    username TEXT NOT NULL,
    type TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    public_key TEXT NOT NULL,
    comment TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (sandbox_id, username, fingerprint)
  ) STRICT;
  `,
  `
  CREATE TABLE workflows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    definition TEXT NOT NULL,
    active INTEGER NOT NULL,
    queues INTEGER NOT NULL,
    run_id TEXT,
    failures INTEGER NOT NULL,
    next_run_at INTEGER,
    planned_at INTEGER NOT NULL,
    last_run_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX workflows_owner ON workflows (owner, id);
  CREATE INDEX workflows_active ON workflows (active) WHERE active = 1;
  CREATE INDEX workflows_due ON workflows (next_run_at) WHERE next_run_at IS NOT NULL;
  CREATE INDEX workflows_planned ON workflows (planned_at) WHERE next_run_at IS NOT NULL;
  CREATE INDEX workflows_run ON workflows (run_id) WHERE run_id IS NOT NULL;

  CREATE TABLE workflow_runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    workflow_id INTEGER NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    "trigger" TEXT NOT NULL,
    state TEXT NOT NULL,
    holder TEXT NOT NULL,
    sandbox_id TEXT,
    scheduled_for INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT NOT NULL
  ) STRICT;
  CREATE INDEX workflow_runs_workflow ON workflow_runs (workflow_id, seq);
  CREATE INDEX workflow_runs_running ON workflow_runs (seq) WHERE state = 'running';
  `,
  "ALTER TABLE execs ADD COLUMN start_error TEXT",
  `
  CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    sandbox_id TEXT,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    UNIQUE (owner, name)
  ) STRICT;
  CREATE INDEX workspaces_sandbox ON workspaces (sandbox_id) WHERE sandbox_id IS NOT NULL;
  CREATE INDEX workspaces_used ON workspaces (last_used_at, id);
  `,
  "ALTER TABLE sandboxes ADD COLUMN permissions TEXT",
  // One index for both, so that an exec that starts or ends writes no more than before.
  `
  ALTER TABLE execs ADD COLUMN unrecorded INTEGER NOT NULL DEFAULT 0;
  DROP INDEX execs_running;
  CREATE INDEX execs_open ON execs (sandbox_id, seq) WHERE status = 'running' OR unrecorded = 1;
  `,
  // A name is its owner's; the column says what core/access/owner-label.ts does.
  `
  ALTER TABLE sandboxes ADD COLUMN owner TEXT
    GENERATED ALWAYS AS (coalesce(json_extract(labels, '$."dev.aido.owner"'), 'anonymous')) VIRTUAL;
  DROP INDEX sandboxes_name;
  CREATE UNIQUE INDEX sandboxes_name ON sandboxes (name, owner) WHERE name IS NOT NULL AND state <> 'deleted';
  `,
  "ALTER TABLE api_keys ADD COLUMN limits TEXT NOT NULL DEFAULT '{}'",
  "ALTER TABLE kept_answers ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
  "ALTER TABLE execs ADD COLUMN fingerprint TEXT",
  // Kept by sandbox: an exec that starts writes three pages instead of five.
  `
  CREATE TABLE execs_by_sandbox (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    argv TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code INTEGER,
    signal TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    stdout_bytes INTEGER NOT NULL,
    stderr_bytes INTEGER NOT NULL,
    start_error TEXT,
    unrecorded INTEGER NOT NULL,
    fingerprint TEXT,
    PRIMARY KEY (sandbox_id, seq),
    UNIQUE (sandbox_id, id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO execs_by_sandbox
    SELECT sandbox_id, seq, id, argv, status, exit_code, signal, started_at, ended_at, stdout_bytes, stderr_bytes,
      start_error, unrecorded, fingerprint FROM execs;
  DROP TABLE execs;
  ALTER TABLE execs_by_sandbox RENAME TO execs;
  CREATE INDEX execs_open ON execs (sandbox_id, seq) WHERE status = 'running' OR unrecorded = 1;
  `,
];
