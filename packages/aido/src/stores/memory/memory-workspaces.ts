import { quotaOfWorkspaces } from "../../core/workspace/quota-of-workspaces.ts";
import type { WorkspaceRecord, WorkspaceStore } from "../../core/workspace/workspace-store.ts";

export class MemoryWorkspaces implements WorkspaceStore {
  readonly #records = new Map<string, WorkspaceRecord>();

  async get(owner: string, name: string): Promise<WorkspaceRecord | undefined> {
    return (await this.list(owner)).find((record) => record.name === name);
  }

  async list(owner?: string): Promise<readonly WorkspaceRecord[]> {
    const found = [...this.#records.values()].filter(
      (record) => owner === undefined || record.owner === owner,
    );
    return structuredClone(found.sort((a, b) => (a.name + a.owner < b.name + b.owner ? -1 : 1)));
  }

  async insert(record: WorkspaceRecord, most: number): Promise<boolean> {
    const own = [...this.#records.values()].filter(({ owner }) => owner === record.owner);
    if (own.some(({ name }) => name === record.name)) return false;
    if (most > 0 && own.length >= most) throw quotaOfWorkspaces(most);
    this.#records.set(record.id, structuredClone(record));
    return true;
  }

  async take(id: string, holder: string | undefined, sandboxId: string, at: Date): Promise<boolean> {
    const record = this.#records.get(id);
    if (record === undefined || record.sandboxId !== holder) return false;
    this.#records.set(id, { ...record, sandboxId, lastUsedAt: at });
    return true;
  }

  async release(sandboxId: string, at: Date, id?: string): Promise<void> {
    for (const record of this.#records.values()) {
      if (record.sandboxId !== sandboxId || (id !== undefined && record.id !== id)) continue;
      this.#records.set(record.id, { ...record, sandboxId: undefined, lastUsedAt: at });
    }
  }

  async remove(id: string, holder: string | undefined): Promise<boolean> {
    const record = this.#records.get(id);
    return record !== undefined && record.sandboxId === holder && this.#records.delete(id);
  }

  async unusedSince(
    at: Date,
    limit: number,
    after?: Pick<WorkspaceRecord, "id" | "lastUsedAt">,
  ): Promise<readonly WorkspaceRecord[]> {
    const order = (a: Pick<WorkspaceRecord, "id" | "lastUsedAt">, b: typeof a) =>
      a.lastUsedAt.getTime() - b.lastUsedAt.getTime() || (a.id < b.id ? -1 : 1);
    const due = [...this.#records.values()].filter(({ lastUsedAt }) => lastUsedAt <= at).sort(order);
    const rest =
      after === undefined ? due : due.filter((record) => record.id !== after.id && order(after, record) < 0);
    return structuredClone(rest.slice(0, limit));
  }
}
