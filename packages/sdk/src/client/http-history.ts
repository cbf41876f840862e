import type { History, HistoryEntry, HistoryFile, HistoryPage } from "../history.ts";
import type { Transport } from "./transport.ts";

const at = (sandbox: string, verb: string): string => `/api/sandbox/${encodeURIComponent(sandbox)}/${verb}`;

interface EntryReply {
  id: string;
  commitId: string;
  timestamp: string;
  message: string;
  files: string[];
  truncated?: boolean;
}

export class HttpHistory implements History {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(sandbox: string, { limit, before, signal }: HistoryPage = {}): Promise<readonly HistoryEntry[]> {
    const reply = await this.#transport.json<{ history: EntryReply[] }>(at(sandbox, "history"), {
      query: { limit, before },
      signal,
      repeatable: true,
    });
    return reply.history.map(toEntry);
  }

  async diff(
    sandbox: string,
    fromExecId: string,
    toExecId: string,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    const json = { fromExecId, toExecId };
    const call = { method: "POST" as const, json, signal, repeatable: true };
    return (await this.#transport.json<{ diff: Record<string, string> }>(at(sandbox, "diff"), call)).diff;
  }

  async rollback(sandbox: string, execId: string, signal?: AbortSignal): Promise<HistoryEntry> {
    const { entry } = await this.#transport.json<{ entry: EntryReply }>(at(sandbox, "rollback"), {
      method: "POST",
      json: { executionId: execId },
      slow: true,
      signal,
    });
    return toEntry(entry);
  }

  async tree(sandbox: string, execId: string): Promise<readonly HistoryFile[]> {
    const path = at(sandbox, `history/${encodeURIComponent(execId)}/tree`);
    const reply = await this.#transport.json<{ tree: (HistoryFile & { type: string })[] }>(path, {
      repeatable: true,
    });
    return reply.tree.map(({ type: _, ...file }) => file);
  }

  async file(sandbox: string, execId: string, path: string): Promise<Uint8Array> {
    const url = at(sandbox, `history/${encodeURIComponent(execId)}/file`);
    const response = await this.#transport.send(url, { query: { path }, repeatable: true });
    return new Uint8Array(await response.arrayBuffer());
  }
}

function toEntry({ id, timestamp, ...entry }: EntryReply): HistoryEntry {
  return { ...entry, execId: id, at: new Date(timestamp) };
}
