/** Numbers of docs/reference/agent-protocol.md. The C side has the same in agent/src/protocol.h. */
export const PROTOCOL_VERSION = 1;
export const MAX_FRAME_BYTES = 1_048_576;
export const RING_BYTES = 262_144;
export const STDIN_WINDOW_BYTES = 524_288;
export const TOKEN_BYTES = 32;

export const HOST_FRAME = {
  hello: 0x01,
  ping: 0x02,
  configure: 0x03,
  exec: 0x04,
  attach: 0x05,
  ack: 0x06,
  stdin: 0x07,
  stdinClose: 0x08,
  resize: 0x09,
  signal: 0x0a,
  forget: 0x0b,
  list: 0x0c,
  shutdown: 0x0d,
} as const;

export const SUPERVISOR_FRAME = {
  welcome: 0x81,
  pong: 0x82,
  configured: 0x83,
  started: 0x84,
  output: 0x85,
  stdinAck: 0x86,
  end: 0x87,
  error: 0x88,
  listed: 0x89,
  detached: 0x8a,
  forgotten: 0x8b,
  ok: 0x8c,
} as const;

export const EXEC_FLAG = { stdin: 1, pty: 2, builtin: 4, user: 8, main: 16 } as const;
export const END_FLAG = {
  timeout: 1,
  outOfMemory: 2,
  outputLimit: 4,
  cutOff: 8,
  killed: 16,
  main: 32,
  /** What this connection watches is as it was last told. */
  quiet: 64,
} as const;
export const STREAM = { stdout: 1, stderr: 2 } as const;
export const SIGNAL_SCOPE = { first: 0, all: 1 } as const;

/** Exit codes of the supervisor itself, which are those of its container; with a main command, that one's instead of 0. */
export const SUPERVISOR_EXIT = { shutdown: 0, deadline: 124, startFailed: 125 } as const;
