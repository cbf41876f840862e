import { randomUUID } from "node:crypto";
import Database from "libsql";
import type { AgentMessage } from "./model-client.ts";
import type {
  CompactionEvent,
  Session,
  SessionStatus,
  SessionStore,
  StoredMessage,
} from "./session-store.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY,
  created_at TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'completed', 'failed')),
  task TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS messages (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  sequence REAL NOT NULL,
  role TEXT NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  is_compacted INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  UNIQUE (session_id, sequence)
);
CREATE TABLE IF NOT EXISTS compaction_events (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  round INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  tokens_before INTEGER NOT NULL,
  tokens_after INTEGER NOT NULL,
  summary_content TEXT NOT NULL
);`;

interface MessageRow {
  sequence: number;
  role: AgentMessage["role"];
  content: string;
  token_count: number;
  is_compacted: number;
}

/** Sessions in one SQLite file. `content` holds the whole message as JSON, so that tool calls come back exactly. */
export class SqliteSessionStore implements SessionStore {
  readonly #db: Database.Database;
  readonly #now: () => Date;

  constructor(path: string, now: () => Date = () => new Date()) {
    this.#db = new Database(path);
    this.#now = now;
    this.#db.pragma("journal_mode = WAL");
    this.#db.pragma("busy_timeout = 5000");
    this.#db.exec(SCHEMA);
  }

  async createSession(task: string): Promise<Session> {
    const session: Session = { id: randomUUID(), createdAt: this.#now(), status: "active", task };
    this.#db
      .prepare("INSERT INTO sessions (id, created_at, status, task) VALUES (?, ?, ?, ?)")
      .run(session.id, session.createdAt.toISOString(), session.status, task);
    return session;
  }

  async updateSessionStatus(id: string, status: SessionStatus): Promise<void> {
    this.#db.prepare("UPDATE sessions SET status = ? WHERE id = ?").run(status, id);
  }

  async getSession(id: string): Promise<Session | undefined> {
    const rows = this.#db
      .prepare("SELECT id, created_at, status, task FROM sessions WHERE id = ?")
      .all(id) as unknown as { id: string; created_at: string; status: SessionStatus; task: string }[];
    const row = rows[0];
    return row && { id: row.id, createdAt: new Date(row.created_at), status: row.status, task: row.task };
  }

  async appendMessage(sessionId: string, message: AgentMessage, tokenCount: number): Promise<StoredMessage> {
    const append = this.#db.transaction(() => {
      const [{ next } = { next: 1 }] = this.#db
        .prepare(
          "SELECT CAST(COALESCE(MAX(sequence), 0) AS INTEGER) + 1 AS next FROM messages WHERE session_id = ?",
        )
        .all(sessionId) as unknown as { next: number }[];
      this.#insert(sessionId, next, message, tokenCount);
      return next;
    });
    return { ...message, sequence: append.immediate(), tokenCount, isCompacted: false };
  }

  async listMessages(
    sessionId: string,
    options: { includeCompacted?: boolean } = {},
  ): Promise<readonly StoredMessage[]> {
    const rows = this.#db
      .prepare(
        `SELECT sequence, role, content, token_count, is_compacted FROM messages
         WHERE session_id = ? AND (is_compacted = 0 OR ?) ORDER BY sequence`,
      )
      .all(sessionId, options.includeCompacted ? 1 : 0) as unknown as MessageRow[];
    return rows.map((row) => ({
      ...(JSON.parse(row.content) as Omit<AgentMessage, "role">),
      role: row.role,
      sequence: row.sequence,
      tokenCount: row.token_count,
      isCompacted: row.is_compacted === 1,
    }));
  }

  async compact(
    sessionId: string,
    sequences: readonly number[],
    summary: { content: string; tokenCount: number },
    event: { tokensBefore: number; tokensAfter: number },
  ): Promise<void> {
    const [first] = sequences;
    const last = sequences.at(-1);
    if (first === undefined || last === undefined) return;
    const apply = this.#db.transaction(() => {
      this.#db
        .prepare("UPDATE messages SET is_compacted = 1 WHERE session_id = ? AND sequence BETWEEN ? AND ?")
        .run(sessionId, first, last);
      // Between the compacted messages and what is kept, so that the order of the session stays readable.
      this.#insert(sessionId, last + 0.5, { role: "user", content: summary.content }, summary.tokenCount);
      this.#db
        .prepare(
          `INSERT INTO compaction_events (id, session_id, round, created_at, tokens_before, tokens_after, summary_content)
           VALUES (?, ?, (SELECT COUNT(*) + 1 FROM compaction_events WHERE session_id = ?), ?, ?, ?, ?)`,
        )
        .run(
          randomUUID(),
          sessionId,
          sessionId,
          this.#now().toISOString(),
          event.tokensBefore,
          event.tokensAfter,
          summary.content,
        );
    });
    apply.immediate();
  }

  async listCompactions(sessionId: string): Promise<readonly CompactionEvent[]> {
    const rows = this.#db
      .prepare(
        `SELECT round, created_at, tokens_before, tokens_after, summary_content
         FROM compaction_events WHERE session_id = ? ORDER BY round`,
      )
      .all(sessionId) as unknown as {
      round: number;
      created_at: string;
      tokens_before: number;
      tokens_after: number;
      summary_content: string;
    }[];
    return rows.map((row) => ({
      round: row.round,
      createdAt: new Date(row.created_at),
      tokensBefore: row.tokens_before,
      tokensAfter: row.tokens_after,
      summaryContent: row.summary_content,
    }));
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #insert(sessionId: string, sequence: number, message: AgentMessage, tokenCount: number): void {
    const { role, ...content } = message;
    this.#db
      .prepare(
        `INSERT INTO messages (id, session_id, sequence, role, content, token_count, is_compacted, created_at)
         VALUES (?, ?, ?, ?, ?, ?, 0, ?)`,
      )
      .run(
        randomUUID(),
        sessionId,
        sequence,
        role,
        JSON.stringify(content),
        tokenCount,
        this.#now().toISOString(),
      );
  }
}
