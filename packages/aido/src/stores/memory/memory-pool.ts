import type { PooledSandbox, PoolStore } from "../../core/pool/pool-store.ts";
import type { SandboxRecord, SandboxStore } from "../../core/store/store.ts";

export class MemoryPool implements PoolStore {
  readonly #pooled = new Map<string, PooledSandbox>();
  readonly #sandboxes: SandboxStore;

  constructor(sandboxes: SandboxStore) {
    this.#sandboxes = sandboxes;
  }

  async insert(pooled: PooledSandbox): Promise<void> {
    this.#pooled.set(pooled.record.id, structuredClone(pooled));
  }

  async setReady(id: string, holder: string, record: SandboxRecord): Promise<boolean> {
    const pooled = this.#of(id, holder);
    if (pooled === undefined) return false;
    Object.assign(pooled, { isReady: true, record: structuredClone(record) });
    return true;
  }

  async claim(id: string, holder: string, record: SandboxRecord): Promise<boolean> {
    const pooled = this.#of(id, holder);
    if (pooled === undefined || !pooled.isReady) return false;
    this.#pooled.delete(id);
    try {
      await this.#sandboxes.insert(record);
      return true;
    } catch (thrown) {
      this.#pooled.set(id, pooled);
      throw thrown;
    }
  }

  async takeOver(id: string, from: string, to: string): Promise<boolean> {
    const pooled = this.#of(id, from);
    if (pooled === undefined) return false;
    pooled.holder = to;
    return true;
  }

  async remove(id: string, holder: string): Promise<void> {
    if (this.#of(id, holder) !== undefined) this.#pooled.delete(id);
  }

  async list(): Promise<readonly PooledSandbox[]> {
    return structuredClone([...this.#pooled.values()]);
  }

  #of(id: string, holder: string): PooledSandbox | undefined {
    const pooled = this.#pooled.get(id);
    return pooled?.holder === holder ? pooled : undefined;
  }
}
