import type { ErrorBody } from "./errors.ts";

/** `lost` means the container died before the supervisor could tell how the command ended. */
export const EXEC_STATUSES = [
  "running",
  "exited",
  "killed",
  "timeout",
  "out_of_memory",
  "output_limit",
  "lost",
] as const;
export type ExecStatus = (typeof EXEC_STATUSES)[number];

export type OutputStream = "stdout" | "stderr";

export interface TerminalSize {
  rows: number;
  cols: number;
}

export interface ExecRequest {
  argv: readonly string[];
  /** Chosen by the caller: the same id twice runs once. */
  id?: string | undefined;
  /** Of all that was asked for, files and input included: the same id with another one is refused. The server sets it. */
  fingerprint?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  /** Relative to the sandbox's workdir, or absolute inside the sandbox. */
  cwd?: string | undefined;
  user?: string | undefined;
  /** Keep standard input open for `writeStdin`; otherwise it is empty. */
  stdin?: boolean | undefined;
  /** Run on a terminal; standard error then arrives as standard output. */
  pty?: TerminalSize | undefined;
  /** 0 or absent means no limit of its own. */
  timeoutMs?: number | undefined;
  /** Between TERM and KILL. */
  killGraceMs?: number | undefined;
  /** Whether a change of the workspace becomes an entry of its history. */
  history?: boolean | undefined;
  /** Start the sandbox first when it is stopped; its own setting when absent. */
  autoResume?: boolean | undefined;
}

export interface ExecInfo {
  id: string;
  sandboxId: string;
  argv: readonly string[];
  status: ExecStatus;
  /** 128 + signal number when a signal ended it; undefined while it runs or when it is lost. */
  exitCode: number | undefined;
  signal: string | undefined;
  /** Why the program could not be started: the answer to whoever starts the same id again. Its exit code is 127 or 126. */
  startError?: ErrorBody["error"] | undefined;
  startedAt: Date;
  endedAt: Date | undefined;
  durationMs: number | undefined;
  stdoutBytes: number;
  stderrBytes: number;
}

export interface OutputChunk {
  stream: OutputStream;
  /** Position of the first byte of `data` in its stream. */
  offset: number;
  data: Uint8Array;
}

export interface OutputRange {
  stdoutOffset?: number | undefined;
  stderrOffset?: number | undefined;
  /** Go on until the exec has ended; otherwise stop at what is there now. */
  follow?: boolean | undefined;
}
