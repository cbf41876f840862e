/* What the supervisor's parts share: its loop, connections, execs and the one state they hang on. */
#ifndef AIDO_AGENT_H
#define AIDO_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "frame.h"
#include "protocol.h"
#include "ring.h"
#include "watch.h"

/* ---- loop.c: descriptors and the function each one wakes ---- */

struct source {
  int fd; /* -1 when closed */
  bool watched;
  uint32_t events;
  void (*ready)(struct source *, uint32_t events);
};

#define CLOSED_SOURCE ((struct source){.fd = -1})
#define container(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

bool loop_open(void);
void loop_set(struct source *s, int fd, void (*ready)(struct source *, uint32_t));
/* Hangup and error are reported even for no events; loop_pause stops those too. */
bool loop_watch(struct source *s, uint32_t events);
void loop_pause(struct source *s);
void loop_close(struct source *s);
void loop_wait(int timeout_ms);
uint64_t now_ms(void);

/* ---- listener.c: both give -1 with errno ---- */

/* A socket that listens at `path`, which may be longer than a socket address. */
int open_listener(const char *path);
/* A listening socket that our starter opened, put at 3. */
int take_listener(int handed);

/* ---- conn.c ---- */

struct conn {
  bool used, welcome, blocked, closing, gone;
  struct source source;
  struct buffer in, out;
  uint64_t hello_by;
};

/* False when there is no descriptor for it. */
bool conn_accept(int listener);
void conn_close(struct conn *c);
/* Sends what its execs have for it, then what waits in its buffer. */
void conn_flush(struct conn *c);
void conn_error(struct conn *c, const char *id, const char *code, int error, const char *message);
/* Handles every whole frame of `in`. */
void conn_parse(struct conn *c);

/* ---- exec.c ---- */

struct stream {
  struct source source;
  struct ring ring;
  uint64_t sent; /* offset of the next byte for the attached connection */
  uint64_t owed; /* bytes that were there when the command ended: never cut off */
  bool dropping; /* read and thrown away */
  bool wide;     /* its pipe was given all the room it gets */
};

enum kill_stage { KILL_NONE, KILL_GRACE, KILL_NOW };

struct exec {
  struct exec *next;
  char id[MAX_ID + 1];
  uint8_t flags;
  bool started, first_ended, ended, forgotten, end_due;
  uint8_t start_due; /* STARTED to send: 1 = new, 2 = existing */
  pid_t shepherd;    /* or the tool's process; 0 when gone */
  pid_t first;
  struct conn *conn;
  struct source status, input;
  struct stream out[2];
  struct buffer pending; /* standard input not yet written */
  uint64_t in_written;   /* standard input's offset of the first byte of `pending` */
  uint64_t in_close;     /* offset after which it is closed; UINT64_MAX when open */
  bool in_gone, in_ack_due, in_wide;
  uint64_t timeout_at, cut_off_at, kill_at; /* 0 = never */
  enum kill_stage kill;
  uint8_t kill_scope, last_signal, kill_passes;
  uint32_t grace_ms;
  uint64_t output_limit;
  uint64_t oom_kills;
  int status_code; /* as wait() gives it */
  bool we_killed;
  uint8_t end_flags;
  uint64_t cpu_ms, max_rss;
  struct watch watch; /* of a run of `watch … sync` */
};

struct exec_request {
  char id[MAX_ID + 1];
  uint8_t flags;
  uint32_t uid, gid;
  char *cwd; /* owned, like argv and env */
  char **argv, **env;
  uint16_t rows, cols;
  uint64_t timeout_ms, output_limit;
  uint32_t grace_ms;
};

struct exec *exec_find(const char *id);
void exec_start(struct conn *c, const struct exec_request *request);
void exec_attach(struct exec *e, struct conn *c, uint64_t stdout_offset, uint64_t stderr_offset);
void exec_detach_all(struct conn *c);
void exec_ack(struct exec *e, int stream, uint64_t offset);
bool exec_stdin(struct exec *e, uint64_t offset, const uint8_t *bytes, size_t length);
void exec_stdin_close(struct exec *e, uint64_t offset);
bool exec_resize(struct exec *e, uint16_t rows, uint16_t cols);
void exec_signal(struct exec *e, uint8_t signal, uint8_t scope, uint32_t grace_ms);
void exec_forget(struct exec *e);
void exec_resume(struct exec *e, int stream);
void exec_first_ended(struct exec *e, int status, const struct rusage *usage);
void exec_reaped(pid_t pid, int status, const struct rusage *usage);
/* Whether nothing has changed since what this connection watches was last told to it. */
bool exec_all_quiet(const struct conn *c);
/* Whether there is a command whose end is the sandbox's. */
bool exec_has_main(void);
/* Does what is due and returns when the next thing is (0 = nothing waits). */
uint64_t exec_tick(struct exec *e, uint64_t now);
bool exec_make_room(void);

/* ---- spawn.c: from a request to processes ---- */

enum step { STEP_FORK = 1, STEP_PIPE, STEP_PTY, STEP_CAPABILITIES, STEP_SETGROUPS, STEP_SETGID, STEP_SETUID, STEP_CHDIR, STEP_EXECVE, STEP_SHEPHERD };
const char *step_name(uint8_t step);

/* What a shepherd or tool tells the supervisor. Smaller than PIPE_BUF, so each arrives whole. */
struct report {
  uint8_t kind, step; /* kind: 1 started, 2 failed, 3 ended */
  int error;
  pid_t pid;
  int status;
  struct rusage usage;
};
enum { REPORT_STARTED = 1, REPORT_FAILED, REPORT_ENDED };

struct spawned {
  pid_t pid;
  int input, output[2], status; /* -1 = none; non-blocking */
  struct watch watch;
};

/* Signals that we were started to ignore would be ignored by every command too. */
void heed_signals(void);
/* 0, or an errno with the step in `step`. */
int spawn(const struct exec_request *request, struct spawned *out, uint8_t *step);

/* ---- trim.c: giving memory back ---- */

/* What a buffer has grown to is kept for a moment, because while much comes or goes the next of it needs the same. */
void trim_later(const struct buffer *b);
void trim_buffers(void);

/* ---- shepherd.c ---- */

/* Forks a shepherd that waits for a command, when there is none. */
void spare_make(void);
/* Whether it is that one. */
bool spare_is(pid_t pid);
/* It is not waited for any more, or was reaped. */
void spare_end(void);

/* ---- process.c: finding and killing ---- */

/* Signals the descendants of `root` that live, and returns how many there were; -1 when /proc cannot tell.
   Known shepherds, tools and what is below them are passed over when `strays` is set. */
int signal_descendants(pid_t root, int signal, bool strays);
/* Stops, then kills them; 0 when none is left. */
int kill_descendants(pid_t root, bool strays);
/* Kills every child of ours that is no shepherd or tool, without /proc. */
int kill_unknown_children(void);

/* ---- text.c: the C library's own conversions are larger than all of ours together ---- */

/* Writes digits and a NUL, up to 21 bytes; returns the number of digits. */
size_t decimal(char *to, unsigned long value);
/* Reads digits and moves past them; false when there is none or they are too many. */
bool number(const char **text, uint64_t *value);

/* ---- user.c ---- */

/* Becomes the user with no capability left, for good. 0, or an errno with the step in `step`. */
int become(uint32_t uid, uint32_t gid, uint8_t *step);
void read_bounding_set(void);
int drop_bounding_set(void);

/* ---- supervise.c ---- */

struct supervisor {
  pid_t pid;
  bool claimed, configured;
  uint8_t token[TOKEN_BYTES];
  uint64_t boot;
  uint32_t uid, gid;
  uint32_t only_user; /* commands run as no other; 0 = any */
  bool privileged;    /* commands of root keep what the container has */
  uint64_t bounding;  /* capabilities that anything we start could be given */
  char *workdir;
  uint64_t deadline_at; /* 0 = none */
  int null;             /* /dev/null, or -1 */
  struct conn conns[MAX_CONNS];
  struct exec *execs; /* oldest first */
  unsigned remembered;
  uint64_t strays_at; /* 0 = no strays to kill */
  bool ending;
  int exit_code;
  int main_code;        /* what the main command's end makes of an exit code of 0 */
  uint64_t linger_ms, linger_at; /* how long its end waits for a host, and until when; 0 = it has not ended */
  uint64_t end_kill_at, end_pass_at, end_by;
  pid_t highest;    /* pid seen so far, for the search without /proc */
  int highest_fd;   /* descriptor seen so far */
  struct rlimit files; /* what commands may open; we ourselves take what we can get */
  uint64_t listen_at;  /* when to listen again after descriptors ran out; 0 = listening */
  uint8_t stray_passes;
  uint64_t spare_at; /* when to make the next command's shepherd; 0 = not now */
  uint64_t trim_at;  /* when to give back what empty buffers have grown to; 0 = none has */
};
extern struct supervisor the;

uint64_t oom_kills(void);
void supervisor_end(int code, uint32_t grace_ms);
/* 0 or an errno. */
int make_workdir(const char *path, uint32_t uid, uint32_t gid);

int supervise_main(int argc, char **argv);
int connect_main(int argc, char **argv);
int launch_main(int argc, char **argv);
/* Writes "aido-agent: what: error" to standard error and returns `code`. */
int complain(int code, const char *what, int error);
/* Closes every descriptor from `first` on; where the kernel cannot do that at once, up to `last`. */
void close_from(int first, int last);

#endif
