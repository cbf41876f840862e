import type { CreateSandbox } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../store/store.ts";

/** Where running sandboxes may be had without making them. */
export interface SandboxPool {
  /** Undefined when there is none as asked for. */
  claim(request: CreateSandbox, signal?: AbortSignal): Promise<SandboxRecord | undefined>;
  /** Makes one while the pool holds its own making back. */
  beside<T>(work: () => Promise<T>): Promise<T>;
}
