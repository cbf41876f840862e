import { AidoError } from "@aido/sdk/protocol";
import type { SshKeyName, SshKeyRecord, SshKeyStore } from "../../core/ssh/ssh-key-store.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

const NAMED = "sandbox_id = ? AND username = ? AND fingerprint = ?";

export class SqliteSshKeys implements SshKeyStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async add(record: SshKeyRecord): Promise<SshKeyRecord> {
    return this.#db.write(() => {
      if (this.#db.first("SELECT 1 FROM sandboxes WHERE id = ?", record.sandboxId) === undefined) {
        throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${record.sandboxId} does not exist`);
      }
      this.#db.run(
        `INSERT INTO ssh_keys (sandbox_id, username, type, fingerprint, public_key, comment, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        record.sandboxId,
        record.username,
        record.type,
        record.fingerprint,
        record.publicKey,
        record.comment,
        record.createdAt.getTime(),
      );
      return this.#find(record) ?? record;
    });
  }

  async get(name: SshKeyName): Promise<SshKeyRecord | undefined> {
    return this.#find(name);
  }

  async remove({ sandboxId, username, fingerprint }: SshKeyName): Promise<boolean> {
    return this.#db.run(`DELETE FROM ssh_keys WHERE ${NAMED}`, sandboxId, username, fingerprint) > 0;
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.#db.run("DELETE FROM ssh_keys WHERE sandbox_id = ?", sandboxId);
  }

  async list(sandboxId: string): Promise<readonly SshKeyRecord[]> {
    return this.#db.all("SELECT * FROM ssh_keys WHERE sandbox_id = ? ORDER BY seq", sandboxId).map(toRecord);
  }

  #find({ sandboxId, username, fingerprint }: SshKeyName): SshKeyRecord | undefined {
    const row = this.#db.first(`SELECT * FROM ssh_keys WHERE ${NAMED}`, sandboxId, username, fingerprint);
    return row === undefined ? undefined : toRecord(row);
  }
}

function toRecord(row: Row): SshKeyRecord {
  return {
    sandboxId: String(row["sandbox_id"]),
    username: String(row["username"]),
    type: String(row["type"]),
    fingerprint: String(row["fingerprint"]),
    publicKey: String(row["public_key"]),
    comment: String(row["comment"]),
    createdAt: new Date(Number(row["created_at"])),
  };
}
