/* Feeds bytes to a connection as the host would, with every process stubbed, and checks that what comes back is frames. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/agent.h"

struct supervisor the = {.null = -1};

/* No such process can exist; the build also turns every kill() into fuzz_kill(). */
enum { NO_PID = 0x3ffffff0 };
int fuzz_kill(pid_t pid, int signal);
int fuzz_kill(pid_t pid, int signal) {
  (void)pid;
  (void)signal;
  return 0;
}

uint64_t oom_kills(void) { return 0; }
int make_workdir(const char *path, uint32_t uid, uint32_t gid) { return path[0] == '/' ? 0 : (int)((uid ^ gid) & 1); }
void supervisor_end(int code, uint32_t grace_ms) { the.ending = code == 0 && grace_ms > 0; }
int signal_descendants(pid_t root, int signal, bool strays) { return root == NO_PID && signal >= 0 && !strays ? 0 : -1; }
int kill_descendants(pid_t root, bool strays) { return signal_descendants(root, 0, strays); }
void spare_end(void) {}
const char *step_name(uint8_t step) { return step == 0 ? "exec" : "step"; }

/* The first argument says how the command fares: its first letter the way it starts, its second the way it ends. */
int spawn(const struct exec_request *request, struct spawned *out, uint8_t *step) {
  const char *argument = request->argv[0];
  *step = STEP_FORK;
  if (argument[0] == 'x') return 11;
  int fds[4][2];
  for (int i = 0; i < 4; i++)
    if (pipe2(fds[i], O_CLOEXEC | O_NONBLOCK) != 0) abort();
  bool input = (request->flags & (EXEC_STDIN | EXEC_PTY)) != 0, terminal = (request->flags & EXEC_PTY) != 0;
  *out = (struct spawned){NO_PID, input ? fds[0][1] : -1, {fds[1][0], terminal ? -1 : fds[2][0]}, fds[3][0], NO_WATCH};
  struct report report = {.kind = argument[0] == 'f' ? REPORT_FAILED : REPORT_STARTED, .pid = NO_PID, .error = 2};
  if (write(fds[3][1], &report, sizeof report) < 0) abort();
  report.kind = REPORT_ENDED;
  report.status = argument[0] == 0 ? 0 : (uint8_t)argument[1] << 8;
  if (argument[0] == 'e' && write(fds[3][1], &report, sizeof report) < 0) abort();
  if (write(fds[1][1], argument, strlen(argument)) < 0 || write(fds[2][1], "err", 3) < 0) errno = 0;
  if (!input) close(fds[0][1]);
  if (terminal) close(fds[2][0]);
  close(fds[0][0]);
  for (int i = 1; i < 4; i++) close(fds[i][1]);
  return 0;
}

/* Reads what the supervisor said. Frames may be split anywhere, so the rest waits in `said`. */
static void check_answers(int peer, struct buffer *said) {
  uint8_t bytes[65536];
  for (ssize_t got; (got = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
    if (!buffer_append(said, bytes, (size_t)got)) abort();
    for (;;) {
      long length = frame_length(buffer_start(said), said->length, MAX_FRAME);
      if (length < 0) abort();
      if (length == 0) break;
      uint8_t type = said->bytes[said->offset + 4];
      if (type < WELCOME || type > OK) abort();
      buffer_consume(said, (size_t)length);
    }
  }
}

static void step(struct conn *c, int peer, struct buffer *said) {
  uint64_t now = now_ms();
  for (struct exec *e = the.execs; e != NULL; e = e->next) exec_tick(e, now);
  loop_wait(0);
  if (c->used) conn_flush(c);
  check_answers(peer, said);
  c->blocked = false;
}

static void feed(struct conn *c, const uint8_t *bytes, size_t length) {
  if (!c->used || c->closing) return;
  if (!buffer_append(&c->in, bytes, length)) abort();
  conn_parse(c);
}

static void ignore(struct source *s, uint32_t events) {
  (void)s;
  (void)events;
}

static void forget_everything(void) {
  struct rusage usage = {0};
  while (the.execs != NULL) {
    struct exec *e = the.execs;
    if (e->shepherd != 0) exec_reaped(e->shepherd, 0, &usage);
    if (the.execs == e && e->shepherd == 0) exec_forget(e);
  }
  if (the.remembered != 0) abort();
  free(the.workdir);
  the.workdir = NULL;
  the.claimed = the.configured = the.ending = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool open;
  if (!open && !loop_open()) abort();
  open = true;
  signal(SIGPIPE, SIG_IGN);
  if (size < 1) return 0;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) abort();
  struct conn *c = &the.conns[0];
  struct buffer said = {0};
  *c = (struct conn){.used = true, .hello_by = now_ms() + HELLO_MS};
  loop_set(&c->source, pair[0], ignore);
  if (data[0] & 1) {
    c->welcome = the.claimed = the.configured = true;
    the.workdir = strdup("/work");
  }
  size_t chunk = (size_t)1 << (data[0] >> 1 & 15);
  data++;
  size--;
  while (size > 0 && c->used) {
    size_t length = size < chunk ? size : chunk;
    feed(c, data, length);
    step(c, pair[1], &said);
    data += length;
    size -= length;
  }
  for (int i = 0; i < 3 && c->used; i++) step(c, pair[1], &said);
  conn_close(c);
  forget_everything();
  buffer_free(&said);
  close(pair[1]);
  return 0;
}
