import { AidoError, type RunStatus } from "@aido/sdk/protocol";
import type { RunRow, RunStore } from "../../core/store/store.ts";
import { fromRow, insertSql, RUN_COLUMNS, toAssignments } from "./rows.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const PUT = insertSql("runs", RUN_COLUMNS).replace("INSERT INTO", "INSERT OR REPLACE INTO");

export class SqliteRuns implements RunStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async put(run: RunRow): Promise<void> {
    this.#db.write(() => {
      if (this.#db.first("SELECT 1 FROM sandboxes WHERE id = ?", run.sandboxId) === undefined) {
        throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${run.sandboxId} does not exist`, {
          details: { id: run.sandboxId },
        });
      }
      this.#db.run(PUT, ...toAssignments(RUN_COLUMNS, run).values);
    });
  }

  async get(sandboxId: string): Promise<RunRow | undefined> {
    const row = this.#db.first("SELECT * FROM runs WHERE sandbox_id = ?", sandboxId);
    return row === undefined ? undefined : fromRow(RUN_COLUMNS, row);
  }

  async transition(
    sandboxId: string,
    from: RunStatus,
    to: RunStatus,
    patch: Partial<RunRow> = {},
  ): Promise<boolean> {
    const set = toAssignments(RUN_COLUMNS, { ...patch, status: to });
    const changed = this.#db.run(
      `UPDATE runs SET ${set.columns.map((column) => `${column} = ?`).join(", ")} WHERE sandbox_id = ? AND status = ?`,
      ...set.values,
      sandboxId,
      from,
    );
    return changed > 0;
  }

  async remove(sandboxId: string): Promise<void> {
    this.#db.run("DELETE FROM runs WHERE sandbox_id = ?", sandboxId);
  }
}
