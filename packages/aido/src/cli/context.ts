import type { Aido } from "@aido/sdk";
import type { ApiKeys } from "../core/access/api-keys.ts";
import type { SwarmImages } from "../core/swarm/image/swarm-images.ts";
import type { Workers } from "../core/swarm/workers/workers.ts";
import type { ByteSink } from "./output/byte-sink.ts";
import type { ProgressLine } from "./output/progress-line.ts";

/** What a command may touch. Everything ambient (environment, clock, streams, signals) is handed in here. */
export interface CliContext {
  readonly globals: GlobalOptions;
  readonly stdin: Keyboard;
  readonly stdout: ByteSink;
  readonly stderr: ByteSink;
  readonly progress: ProgressLine;
  readonly signals: SignalSource;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly version: string;
  now(): Date;
  /**
   * Opened once; closed by whoever made the context. A command that `launches` a sandbox saves time by saying so; one that is
   * about a `sandbox` gets the driver that has it.
   */
  open(options?: { launches?: boolean; sandbox?: string | undefined }): Promise<Aido>;
  /** What this machine can do, per driver; a driver that does not answer is part of the answer. */
  doctor(): Promise<DoctorReport>;
  /** Starts the HTTP server of this machine. */
  serve(flags: { host?: string; port?: string; sshPort?: string }): Promise<RunningServer>;
  /** The keys of this machine's server. */
  withKeys<Result>(work: (keys: ApiKeys) => Promise<Result>): Promise<Result>;
  /** The images of swarms, on this machine's engine. */
  withSwarmImages<Result>(work: (images: SwarmImages) => Promise<Result>): Promise<Result>;
  /**
   * The workers of swarms on this machine's engine; they run on when the work is done. Those of a project are kept in its own data
   * directory, unless another one was named.
   */
  withWorkers<Result>(work: (workers: Workers) => Promise<Result>, project?: string): Promise<Result>;
  /** aido itself as a process that outlives this one; what it prints goes to the end of the file. */
  startInBackground(argv: readonly string[], log: string): BackgroundProcess;
  /** The data directory of this machine as one file, and back into an empty one. */
  backUp(file: string): Promise<{ file: string; bytes: number; skipped: number }>;
  restore(file: string): Promise<{ dataDir: string; createdAt: string; sandboxes: number; skipped: number }>;
  /** Every setting and where it came from; secrets print as hidden. */
  settings(): readonly Setting[];
}

export interface BackgroundProcess {
  readonly pid: number | undefined;
  isRunning(): boolean;
}

export interface RunningServer {
  readonly url: string;
  readonly driver: string;
  /** Who gets in: everybody, whoever has a key or token, or nobody, because every key has ended. */
  readonly entrance: "open" | "guarded" | "shut";
  /** `host:port`; undefined when it does not listen for SSH. */
  readonly sshAddress: string | undefined;
  close(): Promise<void>;
}

export interface GlobalOptions {
  json: boolean;
  verbose: boolean;
  quiet: boolean;
  driver: string | undefined;
  dataDir: string | undefined;
  config: string | undefined;
  server: string | undefined;
}

export interface DoctorReport {
  ok: boolean;
  /** The driver that is used when none is named. */
  driver: string | undefined;
  checks: readonly DoctorCheck[];
}

export interface DoctorCheck {
  name: string;
  status: "ok" | "warning" | "failed";
  message: string;
  hint?: string | undefined;
}

export interface Setting {
  key: string;
  value: unknown;
  source: string;
}

/** Standard input: bytes, and on a terminal the size and the switch between line and raw mode. */
export interface Keyboard {
  readonly isTerminal: boolean;
  /** Ends with the input, or when `stop` is called. */
  chunks(): AsyncIterable<Uint8Array>;
  stop(): void;
  setRawMode(raw: boolean): void;
}

export type SignalName = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGWINCH" | "SIGQUIT" | "SIGTSTP" | "SIGCONT";

export interface SignalSource {
  /** Returns the function that takes the handler away again. */
  on(signal: SignalName, handler: () => void): () => void;
  /** Ends this process by the signal, at once. */
  die(signal: SignalName): void;
  /** Stops this process until it is told to go on, as Ctrl-Z does where nobody handles it. */
  suspend(): void;
  /**
   * Written to the terminal however this process ends, SIGKILL excepted: gives back what a command took from it. Returns
   * the function that forgets it.
   */
  atExit(sequence: string): () => void;
  terminalSize(): { rows: number; cols: number };
}
