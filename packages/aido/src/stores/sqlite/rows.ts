import type { ExecRecord, RunRow, SandboxRecord } from "../../core/store/store.ts";
import type { Row, SqlValue } from "./sqlite-connection.ts";

/** Column and how its value is written and read. The store writes every row, so what it reads is its own. */
interface Column<T> {
  column: string;
  write(value: T): SqlValue;
  read(value: SqlValue): T;
}
type Columns<R> = { readonly [K in keyof R]-?: Column<R[K]> };

const text = <T extends string>(column: string): Column<T> => ({
  column,
  write: (value) => value,
  read: (value) => String(value) as T,
});
const optionalText = <T extends string>(column: string): Column<T | undefined> => ({
  column,
  write: (value) => value ?? null,
  read: (value) => (value === null ? undefined : (String(value) as T)),
});
const number = (column: string): Column<number> => ({
  column,
  write: (value) => value,
  read: (value) => Number(value),
});
const optionalNumber = (column: string): Column<number | undefined> => ({
  column,
  write: (value) => value ?? null,
  read: (value) => (value === null ? undefined : Number(value)),
});
const flag = (column: string): Column<boolean> => ({
  column,
  write: (value) => (value ? 1 : 0),
  read: (value) => value === 1,
});
const date = (column: string): Column<Date> => ({
  column,
  write: (value) => value.getTime(),
  read: (value) => new Date(Number(value)),
});
const optionalDate = (column: string): Column<Date | undefined> => ({
  column,
  write: (value) => value?.getTime() ?? null,
  read: (value) => (value === null ? undefined : new Date(Number(value))),
});
const optionalJson = <T>(column: string): Column<T | undefined> => ({
  column,
  write: (value) => (value === undefined ? null : JSON.stringify(value)),
  read: (value) => (value === null ? undefined : (JSON.parse(String(value)) as T)),
});
const json = <T>(column: string): Column<T> => ({
  column,
  write: (value) => JSON.stringify(value),
  read: (value) => JSON.parse(String(value)) as T,
});

export const SANDBOX_COLUMNS: Columns<SandboxRecord> = {
  id: text("id"),
  name: optionalText("name"),
  profile: text("profile"),
  image: text("image"),
  driver: text("driver"),
  isolation: text("isolation"),
  state: text("state"),
  endReason: optionalText("end_reason"),
  containerId: optionalText("container_id"),
  workdir: text("workdir"),
  user: optionalText("user"),
  env: json("env"),
  imageEnv: json("image_env"),
  network: text("network"),
  limits: json("limits"),
  privileged: flag("privileged"),
  history: flag("history"),
  permissions: optionalJson("permissions"),
  labels: json("labels"),
  mounts: json("mounts"),
  ttlMs: number("ttl_ms"),
  idleTimeoutMs: number("idle_timeout_ms"),
  autoResume: flag("auto_resume"),
  lastActivityAt: date("last_activity_at"),
  supervisorToken: text("supervisor_token"),
  tokenHash: optionalText("token_hash"),
  tier: optionalText("tier"),
  tierSince: optionalDate("tier_since"),
  warmImage: optionalText("warm_image"),
  warmIsStale: flag("warm_is_stale"),
  snapshotUrl: optionalText("snapshot_url"),
  snapshotSha256: optionalText("snapshot_sha256"),
  snapshotIsStale: flag("snapshot_is_stale"),
  snapshotDestination: optionalText("snapshot_destination"),
  createdAt: date("created_at"),
  startedAt: optionalDate("started_at"),
  stoppedAt: optionalDate("stopped_at"),
  expiresAt: optionalDate("expires_at"),
};

export const EXEC_COLUMNS: Columns<ExecRecord> = {
  id: text("id"),
  sandboxId: text("sandbox_id"),
  argv: json("argv"),
  status: text("status"),
  exitCode: optionalNumber("exit_code"),
  signal: optionalText("signal"),
  startError: optionalJson("start_error"),
  fingerprint: optionalText("fingerprint"),
  startedAt: date("started_at"),
  endedAt: optionalDate("ended_at"),
  stdoutBytes: number("stdout_bytes"),
  stderrBytes: number("stderr_bytes"),
  unrecorded: flag("unrecorded"),
};

export const RUN_COLUMNS: Columns<RunRow> = {
  sandboxId: text("sandbox_id"),
  status: text("status"),
  task: text("task"),
  execId: optionalText("exec_id"),
  autoDestroy: flag("auto_destroy"),
  startedAt: optionalDate("started_at"),
  completedAt: optionalDate("completed_at"),
};

export function fromRow<R>(columns: Columns<R>, row: Row): R {
  const record: Partial<R> = {};
  for (const key of keysOf(columns)) record[key] = columns[key].read(row[columns[key].column] ?? null);
  return record as R;
}

/** Only the keys that are present; a present `undefined` is written as NULL. */
export function toAssignments<R>(
  columns: Columns<R>,
  patch: Partial<R>,
): { columns: string[]; values: SqlValue[] } {
  const keys = keysOf(columns).filter((key) => key in patch);
  return {
    columns: keys.map((key) => columns[key].column),
    values: keys.map((key) => columns[key].write(patch[key] as R[typeof key])),
  };
}

export function namesOf<R>(columns: Columns<R>): string[] {
  return keysOf(columns).map((key) => columns[key].column);
}

export function insertSql<R>(table: string, columns: Columns<R>): string {
  const names = namesOf(columns);
  return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
}

function keysOf<R>(columns: Columns<R>): (keyof R)[] {
  return Object.keys(columns) as (keyof R)[];
}
