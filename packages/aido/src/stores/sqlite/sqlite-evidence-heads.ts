import type { EvidenceHead, EvidenceHeads } from "../../core/store/store.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

export class SqliteEvidenceHeads implements EvidenceHeads {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async get(sandboxId: string): Promise<EvidenceHead | undefined> {
    return this.#read(sandboxId);
  }

  async advance(
    sandboxId: string,
    append: (head: EvidenceHead | undefined) => EvidenceHead | undefined,
  ): Promise<void> {
    this.#db.write(() => {
      const head = append(this.#read(sandboxId));
      if (head === undefined) return;
      this.#db.run(
        "INSERT OR REPLACE INTO evidence_heads (sandbox_id, seq, hash, bytes) VALUES (?, ?, ?, ?)",
        sandboxId,
        head.seq,
        head.hash,
        head.bytes,
      );
    });
  }

  async ids(): Promise<readonly string[]> {
    const rows = this.#db.all("SELECT sandbox_id FROM evidence_heads ORDER BY sandbox_id");
    return rows.map((row) => String(row["sandbox_id"]));
  }

  #read(sandboxId: string): EvidenceHead | undefined {
    const row = this.#db.first("SELECT seq, hash, bytes FROM evidence_heads WHERE sandbox_id = ?", sandboxId);
    if (row === undefined) return undefined;
    return { seq: Number(row["seq"]), hash: String(row["hash"]), bytes: Number(row["bytes"]) };
  }
}
