import type { ToolRun } from "../supervisor/tool-run.ts";

/** What the parts of a sandbox's disk share. */
export interface DiskDeps {
  /** Runs one of the supervisor's builtin tools as the login's user. */
  run(
    argv: readonly string[],
    options?: { stdin?: Uint8Array | AsyncIterable<Uint8Array>; signal?: AbortSignal; isChange?: boolean },
  ): Promise<ToolRun>;
  /** Where relative paths begin. */
  home: string;
  tell(event: string, detail: Readonly<Record<string, unknown>>): Promise<void>;
}

export interface Attributes {
  mode?: number | undefined;
  modifiedAt?: Date | undefined;
  size?: number | undefined;
}
