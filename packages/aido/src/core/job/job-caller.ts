import type { Progress } from "@aido/sdk";
import type { CreatedSandbox, CreateSandbox, SandboxInfo } from "@aido/sdk/protocol";

/** A sandbox that is there. */
export type JobSandbox = Pick<SandboxInfo, "id">;

/** On whose behalf a job runs: what it may see, and what it may have. */
export interface JobCaller {
  /** Whose batches and sandboxes these are. */
  readonly owner: string;
  /** Runs this machine: may leave tokens of sandboxes out, and sees everybody's batches. */
  readonly isOperator: boolean;
  /** Aido's own scheduler, never a caller from outside. */
  readonly isInternal: boolean;
  /** The sandbox with this id, if the caller may use it; somebody else's is not there. */
  find(sandboxId: string): Promise<JobSandbox>;
  /** Makes a sandbox, as far as the caller may have one more. */
  create(
    request: CreateSandbox,
    options: { signal?: AbortSignal; onProgress?: Progress },
  ): Promise<CreatedSandbox>;
}
