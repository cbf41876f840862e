import { AidoError } from "@aido/sdk/protocol";
import type { AgentRunClaim, AgentSession, AgentSessionStore } from "../../core/agent/agent-session-store.ts";
import type { Row, SqliteConnection } from "./sqlite-connection.ts";

const ONE = "sandbox_id = ? AND session_id = ?";

export class SqliteAgentSessions implements AgentSessionStore {
  readonly #db: SqliteConnection;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  async take(claim: AgentRunClaim, now: Date): Promise<{ taken: boolean; before: AgentSession | undefined }> {
    const { sandboxId, sessionId, agent, runId, until } = claim;
    return this.#db.write(() => {
      if (this.#db.first("SELECT 1 FROM sandboxes WHERE id = ?", sandboxId) === undefined) {
        throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} does not exist`, {
          details: { id: sandboxId },
        });
      }
      const before = this.#get(sandboxId, sessionId);
      if (before?.runUntil !== undefined && before.runUntil > now) return { taken: false, before };
      this.#db.run(
        "INSERT INTO agent_sessions (sandbox_id, session_id, agent, run_id, run_until, used_at) VALUES (?, ?, ?, ?, ?, ?) " +
          "ON CONFLICT (sandbox_id, session_id) DO UPDATE SET run_id = excluded.run_id, run_until = excluded.run_until, used_at = excluded.used_at",
        sandboxId,
        sessionId,
        agent,
        runId,
        until.getTime(),
        now.getTime(),
      );
      return { taken: true, before };
    });
  }

  async renew(claim: Pick<AgentRunClaim, "sandboxId" | "sessionId" | "runId" | "until">): Promise<boolean> {
    const sql = `UPDATE agent_sessions SET run_until = ? WHERE ${ONE} AND run_id = ?`;
    return this.#db.run(sql, claim.until.getTime(), claim.sandboxId, claim.sessionId, claim.runId) > 0;
  }

  async keepReference(sandboxId: string, sessionId: string, runId: string, reference: string): Promise<void> {
    const sql = `UPDATE agent_sessions SET reference = ? WHERE ${ONE} AND run_id = ?`;
    this.#db.run(sql, reference, sandboxId, sessionId, runId);
  }

  async release(sandboxId: string, sessionId: string, runId: string, usedAt: Date): Promise<void> {
    const set = "run_id = NULL, run_until = NULL, used_at = ?";
    const sql = `UPDATE agent_sessions SET ${set} WHERE ${ONE} AND run_id = ?`;
    this.#db.run(sql, usedAt.getTime(), sandboxId, sessionId, runId);
  }

  async get(sandboxId: string, sessionId: string): Promise<AgentSession | undefined> {
    return this.#get(sandboxId, sessionId);
  }

  async list(sandboxId: string): Promise<readonly AgentSession[]> {
    const sql = "SELECT * FROM agent_sessions WHERE sandbox_id = ? ORDER BY used_at DESC, session_id";
    return this.#db.all(sql, sandboxId).map(toSession);
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.#db.run("DELETE FROM agent_sessions WHERE sandbox_id = ?", sandboxId);
  }

  #get(sandboxId: string, sessionId: string): AgentSession | undefined {
    const row = this.#db.first(`SELECT * FROM agent_sessions WHERE ${ONE}`, sandboxId, sessionId);
    return row === undefined ? undefined : toSession(row);
  }
}

function toSession(row: Row): AgentSession {
  const text = (column: string) => (row[column] === null ? undefined : String(row[column]));
  return {
    sandboxId: String(row["sandbox_id"]),
    sessionId: String(row["session_id"]),
    agent: String(row["agent"]),
    reference: text("reference"),
    runId: text("run_id"),
    runUntil: row["run_until"] === null ? undefined : new Date(Number(row["run_until"])),
    usedAt: new Date(Number(row["used_at"])),
  };
}
