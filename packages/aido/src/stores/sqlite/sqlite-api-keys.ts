import { type ApiKeyRecord, type ApiKeys, type KeyLimits, SCOPES } from "../../core/access/api-keys.ts";
import { RowMemo } from "./row-memo.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

export class SqliteApiKeys implements ApiKeys {
  readonly #db: SqliteConnection;
  readonly #memo: RowMemo<ApiKeyRecord | undefined>;
  readonly #answers: RowMemo<boolean>;

  constructor(db: SqliteConnection) {
    this.#db = db;
    this.#memo = new RowMemo(db, "api_keys");
    this.#answers = new RowMemo(db, "api_keys");
  }

  async get(id: string): Promise<ApiKeyRecord | undefined> {
    const known = this.#memo.get(id, () => {
      const row = this.#db.first("SELECT * FROM api_keys WHERE id = ?", id);
      return row === undefined ? undefined : toApiKey(row);
    });
    return known === undefined ? undefined : { ...known };
  }

  async list(): Promise<readonly ApiKeyRecord[]> {
    return this.#db.all("SELECT * FROM api_keys ORDER BY created_at, id").map(toApiKey);
  }

  async hadAny(): Promise<boolean> {
    return this.#isThere("SELECT 1 AS one FROM api_keys LIMIT 1");
  }

  async hasAny(): Promise<boolean> {
    return this.#isThere("SELECT 1 AS one FROM api_keys WHERE revoked_at IS NULL LIMIT 1");
  }

  async insert(key: ApiKeyRecord): Promise<void> {
    this.#db.run(
      `INSERT INTO api_keys (id, name, secret_hash, scopes, limits, created_at, expires_at, revoked_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      key.id,
      key.name,
      key.secretHash,
      key.scopes.join(" "),
      JSON.stringify(key.limits),
      key.createdAt.getTime(),
      key.expiresAt?.getTime() ?? null,
      key.revokedAt?.getTime() ?? null,
    );
  }

  async revoke(id: string, at: Date): Promise<boolean> {
    const sql = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
    return this.#db.run(sql, at.getTime(), id) > 0;
  }

  #isThere(sql: string): boolean {
    return this.#answers.get(sql, () => this.#db.first(sql) !== undefined);
  }
}

function toApiKey(row: Row): ApiKeyRecord {
  const words = String(row["scopes"]).split(" ");
  const date = (value: unknown): Date | undefined => (value === null ? undefined : new Date(Number(value)));
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    secretHash: String(row["secret_hash"]),
    scopes: SCOPES.filter((scope) => words.includes(scope)),
    limits: JSON.parse(String(row["limits"])) as KeyLimits,
    createdAt: new Date(Number(row["created_at"])),
    expiresAt: date(row["expires_at"]),
    revokedAt: date(row["revoked_at"]),
  };
}
