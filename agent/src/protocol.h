/* Numbers of docs/reference/agent-protocol.md. The host has the same in packages/aido/src/core/supervisor/protocol.ts. */
#ifndef AIDO_PROTOCOL_H
#define AIDO_PROTOCOL_H

#define AGENT_VERSION "0.1.0"
#define PROTOCOL_VERSION 1

enum {
  MAX_FRAME = 1048576,
  MAX_ID = 64,
  TOKEN_BYTES = 32,
  RING_BYTES = 262144,
  STDIN_WINDOW = 524288,
  MAX_EXECS = 256,
  MAX_CONNS = 16,
  HELLO_MS = 10000,
  SPARE_MS = 5,
  TRIM_MS = 1000,
  CUT_OFF_MS = 250,
  TERM_GRACE_MS = 5000,
  MAIN_LINGER_MS = 600000,
};

enum host_frame {
  HELLO = 0x01,
  PING,
  CONFIGURE,
  EXEC,
  ATTACH,
  ACK,
  STDIN,
  STDIN_CLOSE,
  RESIZE,
  SIGNAL,
  FORGET,
  LIST,
  SHUTDOWN,
};

enum supervisor_frame {
  WELCOME = 0x81,
  PONG,
  CONFIGURED,
  STARTED,
  OUTPUT,
  STDIN_ACK,
  END,
  ERROR,
  LISTED,
  DETACHED,
  FORGOTTEN,
  OK,
};

enum { EXEC_STDIN = 1, EXEC_PTY = 2, EXEC_TOOL = 4, EXEC_USER = 8, EXEC_MAIN = 16 };
enum { END_TIMEOUT = 1, END_OOM = 2, END_LIMIT = 4, END_CUT_OFF = 8, END_KILLED = 16, END_MAIN = 32, END_QUIET = 64 };
enum { HOW_EXIT = 1, HOW_SIGNAL = 2 };
enum { EXIT_DEADLINE = 124, EXIT_START_FAILED = 125 };

#endif
