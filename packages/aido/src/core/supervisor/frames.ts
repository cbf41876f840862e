import { AidoError } from "@aido/sdk/protocol";

/** What the host says. Field names are those of docs/reference/agent-protocol.md. */
export type HostFrame =
  | { type: "hello"; version: number; token: Uint8Array }
  | { type: "ping"; cookie: number }
  | { type: "configure"; deadlineMs: number; uid: number; gid: number; workdir: string }
  | ExecFrame
  | { type: "attach"; id: string; stdoutOffset: number; stderrOffset: number }
  | { type: "ack"; id: string; stream: number; offset: number }
  | { type: "stdin"; id: string; offset: number; data: Uint8Array }
  | { type: "stdinClose"; id: string; offset: number }
  | { type: "resize"; id: string; rows: number; cols: number }
  | { type: "signal"; id: string; signal: number; scope: number; graceMs: number }
  | { type: "forget"; id: string }
  | { type: "list" }
  | { type: "shutdown"; graceMs: number };

export interface ExecFrame {
  type: "exec";
  id: string;
  flags: number;
  uid: number;
  gid: number;
  cwd: string;
  argv: readonly string[];
  env: readonly string[];
  rows: number;
  cols: number;
  timeoutMs: number;
  graceMs: number;
  outputLimit: number;
}

/** What the supervisor says. */
export type SupervisorFrame =
  | { type: "welcome"; version: number; boot: bigint; claimed: boolean }
  | { type: "pong"; cookie: number }
  | { type: "configured" }
  | { type: "started"; id: string; pid: number; existing: boolean }
  | OutputFrame
  | { type: "stdinAck"; id: string; offset: number; closed: boolean }
  | EndFrame
  | ErrorFrame
  | { type: "listed"; execs: readonly ListedExec[] }
  | { type: "detached"; id: string }
  | { type: "forgotten"; id: string }
  | { type: "ok"; request: number; id: string };

export interface OutputFrame {
  type: "output";
  id: string;
  stream: number;
  offset: number;
  /** A view into the received chunk, not a copy. */
  data: Buffer;
}

export interface EndFrame {
  type: "end";
  id: string;
  how: number;
  code: number;
  flags: number;
  stdoutTotal: number;
  stderrTotal: number;
  cpuMs: number;
  maxRssBytes: number;
}

export interface ErrorFrame {
  type: "error";
  id: string;
  code: string;
  errno: number;
  message: string;
}

export interface ListedExec {
  id: string;
  ended: boolean;
  stdoutBase: number;
  stdoutTotal: number;
  stderrBase: number;
  stderrTotal: number;
}

/** Bytes that no supervisor of ours would send: a broken one, or code that took its place. */
export function protocolError(problem: string): AidoError {
  return new AidoError("CONTAINER_LOST", `The sandbox's supervisor spoke an unknown protocol: ${problem}`, {
    hint: "Nothing it said was used. Destroy the sandbox and make a new one.",
    details: { problem },
  });
}
