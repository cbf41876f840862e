import type { SandboxRecord } from "../store/store.ts";

/** A sandbox that nobody has yet. It is no sandbox to anybody else: no list, quota or search knows it. */
export interface PooledSandbox {
  record: SandboxRecord;
  /** What it is good for; see pool-key.ts. */
  key: string;
  /** Names the process that looks after it; see core/process-identity.ts. */
  holder: string;
  /** False while it is being made. */
  isReady: boolean;
}

export interface PoolStore {
  /** Before anything is made, so that whatever is interrupted can be found. */
  insert(pooled: PooledSandbox): Promise<void>;
  /** False when another process has taken it over. */
  setReady(id: string, holder: string, record: SandboxRecord): Promise<boolean>;
  /**
   * In one step it leaves the pool and becomes a sandbox. False when it is no longer the holder's; raises
   * CONTAINER_NAME_TAKEN and changes nothing when the name is in use.
   */
  claim(id: string, holder: string, record: SandboxRecord): Promise<boolean>;
  /** False when it has another holder by now, or is gone. */
  takeOver(id: string, from: string, to: string): Promise<boolean>;
  remove(id: string, holder: string): Promise<void>;
  list(): Promise<readonly PooledSandbox[]>;
}
