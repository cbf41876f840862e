import type { SandboxRecord } from "../store/store.ts";

/** What the sandbox service asks of a sandbox's supervisor; the connection behind it is shared with execs. */
export interface SupervisorControl {
  /** Claims the supervisor with the record's token and sets its default user, workdir and deadline. */
  configure(record: SandboxRecord, settings: SupervisorSettings, signal?: AbortSignal): Promise<void>;
  /** The content of a file of the sandbox, at most `maxBytes` of it; undefined when there is none. */
  readFile(
    record: SandboxRecord,
    path: string,
    maxBytes: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array | undefined>;
  /** Bytes used on disk beneath a directory of the sandbox. */
  diskBytes(record: SandboxRecord, path: string, signal?: AbortSignal): Promise<number>;
  /** Drops what this process holds open to the sandbox; it is about to end or has ended. */
  release(sandboxId: string): Promise<void>;
}

export interface SupervisorSettings {
  /** Life from now; 0 means no end. */
  deadlineMs: number;
  uid: number;
  gid: number;
  workdir: string;
}
