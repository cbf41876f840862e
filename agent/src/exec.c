#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { FULL_READ = 65536, WIDE_PIPE = 262144, KILLING_MS = 20000 };

struct exec *exec_find(const char *id) {
  for (struct exec *e = the.execs; e != NULL; e = e->next)
    if (!e->forgotten && strcmp(e->id, id) == 0) return e;
  return NULL;
}

bool exec_has_main(void) {
  for (const struct exec *e = the.execs; e != NULL; e = e->next)
    if (!e->forgotten && e->flags & EXEC_MAIN) return true;
  return false;
}

bool exec_all_quiet(const struct conn *c) {
  bool watches = false;
  for (const struct exec *e = the.execs; e != NULL; e = e->next) {
    if (e->conn != c || e->ended || e->watch.inotify < 0) continue;
    watches = true;
    if (!watch_is_quiet(&e->watch)) return false;
  }
  return watches;
}

static void exec_free(struct exec *e) {
  struct exec **link = &the.execs;
  while (*link != e) link = &(*link)->next;
  *link = e->next;
  loop_close(&e->status);
  loop_close(&e->input);
  for (int i = 0; i < 2; i++) {
    loop_close(&e->out[i].source);
    ring_free(&e->out[i].ring);
  }
  buffer_free(&e->pending);
  watch_close(&e->watch);
  if (!e->forgotten) the.remembered--;
  free(e);
}

/* ---- end ---- */

static void end_input(struct exec *e) {
  if (e->in_gone) return;
  loop_close(&e->input);
  e->in_written += e->pending.length;
  buffer_free(&e->pending);
  e->in_gone = true;
  e->in_ack_due = (e->flags & EXEC_STDIN) != 0 && !e->ended;
}

static bool output_open(const struct exec *e) { return e->out[0].source.fd >= 0 || e->out[1].source.fd >= 0; }

static bool owes_output(const struct exec *e) {
  for (int i = 0; i < 2; i++)
    if (e->out[i].source.fd >= 0 && !e->out[i].dropping && ring_total(&e->out[i].ring) < e->out[i].owed) return true;
  return false;
}

/* A host that reads what an ended main command left gets the whole time again. */
static void linger(const struct exec *e) {
  if (e->flags & EXEC_MAIN && e->ended) the.linger_at = now_ms() + the.linger_ms;
}

static void check_end(struct exec *e) {
  if (e->ended || !e->first_ended) return;
  if (output_open(e)) {
    uint64_t now = now_ms();
    /* Who is being killed will close it. */
    bool killing = e->kill == KILL_NOW && e->kill_scope == 1 && now < e->cut_off_at + KILLING_MS;
    if (now < e->cut_off_at || killing || owes_output(e)) return;
    e->end_flags |= END_CUT_OFF;
    for (int i = 0; i < 2; i++) {
      if (e->out[i].source.fd < 0) continue;
      e->out[i].dropping = true;
      exec_resume(e, i);
    }
  }
  end_input(e);
  e->ended = e->end_due = true;
  e->in_ack_due = false;
  e->cut_off_at = 0;
  linger(e);
}

void exec_first_ended(struct exec *e, int status, const struct rusage *usage) {
  if (e->first_ended) return;
  e->first_ended = true;
  e->status_code = status;
  if (e->flags & EXEC_MAIN) the.main_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + (status & 0x7f);
  e->timeout_at = 0;
  e->cpu_ms = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
              (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
  e->max_rss = (uint64_t)usage->ru_maxrss * 1024;
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  /* 137 is what a shell makes of a child that was killed. */
  if (!e->we_killed && (killed || (WIFEXITED(status) && WEXITSTATUS(status) == 137)) && oom_kills() > e->oom_kills)
    e->end_flags |= END_OOM;
  bool asked = e->last_signal != 0 && !(e->end_flags & (END_TIMEOUT | END_LIMIT));
  if (asked && (e->kill != KILL_NONE || (WIFSIGNALED(status) && WTERMSIG(status) == e->last_signal)))
    e->end_flags |= END_KILLED;
  if (e->kill_scope == 0) e->kill = KILL_NONE;
  e->cut_off_at = now_ms() + CUT_OFF_MS;
  for (int i = 0; i < 2; i++) {
    int waiting = 0;
    if (e->out[i].source.fd >= 0 && ioctl(e->out[i].source.fd, FIONREAD, &waiting) != 0) waiting = 0;
    e->out[i].owed = ring_total(&e->out[i].ring) + (uint64_t)waiting;
  }
  check_end(e);
}

/* ---- output ---- */

static void drop_output(struct exec *e, struct stream *s) {
  static uint8_t nowhere[FULL_READ];
  ssize_t got = read(s->source.fd, nowhere, sizeof nowhere);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) loop_close(&s->source);
  if (got > 0 && !s->dropping) {
    s->dropping = true;
    e->end_flags |= END_LIMIT;
    e->we_killed = true;
    e->kill = KILL_NOW;
    e->kill_scope = 1;
    e->kill_at = now_ms();
  }
  check_end(e);
}

static void output_ready(struct exec *e, int index, uint32_t events) {
  struct stream *s = &e->out[index];
  /* An empty pipe that nobody writes to: most streams of most commands, and no room is needed for them. */
  if (!(events & EPOLLIN) && events & EPOLLHUP && !(e->flags & EXEC_PTY)) {
    loop_close(&s->source);
    check_end(e);
    return;
  }
  uint64_t total = ring_total(&s->ring), room = UINT64_MAX;
  if (e->output_limit != 0) room = e->output_limit > total ? e->output_limit - total : 0;
  if (s->dropping || room == 0) {
    drop_output(e, s);
    return;
  }
  struct iovec piece[2];
  int pieces = ring_space(&s->ring, room, piece);
  if (pieces == 0) {
    /* Even the hangup must wait: it comes again when there is room. */
    loop_pause(&s->source);
    return;
  }
  ssize_t got = readv(s->source.fd, piece, pieces);
  if (got > 0) {
    ring_wrote(&s->ring, (uint32_t)got);
    /* A command that fills its pipe gets a wider one. */
    if (got >= FULL_READ && !s->wide && !(e->flags & EXEC_PTY)) {
      fcntl(s->source.fd, F_SETPIPE_SZ, WIDE_PIPE);
      s->wide = true;
    }
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    loop_close(&s->source);
  }
  check_end(e);
}

static void stdout_ready(struct source *s, uint32_t events) {
  output_ready(container(s, struct exec, out[0].source), 0, events);
}

static void stderr_ready(struct source *s, uint32_t events) {
  output_ready(container(s, struct exec, out[1].source), 1, events);
}

void exec_resume(struct exec *e, int stream) { loop_watch(&e->out[stream].source, EPOLLIN); }

void exec_ack(struct exec *e, int stream, uint64_t offset) {
  struct stream *s = &e->out[stream];
  if (offset <= s->ring.base) return;
  ring_acknowledge(&s->ring, offset);
  if (s->sent < offset) s->sent = offset;
  linger(e);
  if (s->ring.length == 0 && s->source.fd < 0) ring_free(&s->ring);
  exec_resume(e, stream);
}

/* ---- standard input ---- */

/* Counts what the command's pipe took in `done`; false when nobody reads it any more. */
static bool put_input(struct exec *e, const uint8_t *bytes, size_t length, size_t *done) {
  *done = 0;
  while (*done < length) {
    ssize_t put = write(e->input.fd, bytes + *done, length - *done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      /* Input that fills its pipe gets a wider one. */
      bool wider = !e->in_wide && !(e->flags & EXEC_PTY) && fcntl(e->input.fd, F_SETPIPE_SZ, WIDE_PIPE) > 0;
      e->in_wide = true;
      if (wider) continue;
      break;
    }
    if (put <= 0) return false;
    *done += (size_t)put;
    e->in_written += (uint64_t)put;
    e->in_ack_due = true;
  }
  return true;
}

static void write_input(struct exec *e) {
  if (e->pending.length > 0 && !e->in_gone) {
    size_t done;
    bool reads = put_input(e, buffer_start(&e->pending), e->pending.length, &done);
    buffer_consume(&e->pending, done);
    if (!reads) end_input(e);
  }
  if (!e->in_gone && e->pending.length == 0 && e->in_written >= e->in_close) {
    struct termios terminal;
    /* A terminal has no end; its end-of-file character is what a person would type. */
    if (e->flags & EXEC_PTY && tcgetattr(e->input.fd, &terminal) == 0 &&
        write(e->input.fd, &terminal.c_cc[VEOF], 1) < 0 && errno == EAGAIN) {
      loop_watch(&e->input, EPOLLOUT);
      return;
    }
    end_input(e);
  }
  if (!e->in_gone) loop_watch(&e->input, e->pending.length > 0 ? EPOLLOUT : 0);
}

static void input_ready(struct source *s, uint32_t events) {
  struct exec *e = container(s, struct exec, input);
  if (events & (EPOLLERR | EPOLLHUP)) {
    end_input(e);
    return;
  }
  write_input(e);
}

bool exec_stdin(struct exec *e, uint64_t offset, const uint8_t *bytes, size_t length) {
  uint64_t received = e->in_written + e->pending.length;
  if (offset > received || length > UINT64_MAX - offset) return false;
  uint64_t known = received - offset;
  if (known >= length && !e->in_gone) return true;
  if (e->in_gone) {
    if (known < length) e->in_written = offset + length;
    e->in_ack_due = !e->ended;
    return true;
  }
  bytes += known;
  length -= known;
  if (e->pending.length + length > STDIN_WINDOW) return false;
  if (e->pending.length == 0) {
    size_t done;
    bool reads = put_input(e, bytes, length, &done);
    bytes += done;
    length -= done;
    if (!reads) {
      e->in_written += length;
      end_input(e);
      return true;
    }
  }
  if (length > 0 && !buffer_append(&e->pending, bytes, length)) return false;
  write_input(e);
  trim_later(&e->pending);
  return true;
}

void exec_stdin_close(struct exec *e, uint64_t offset) {
  if (e->in_gone) {
    e->in_ack_due = !e->ended;
    return;
  }
  e->in_close = offset;
  write_input(e);
}

bool exec_resize(struct exec *e, uint16_t rows, uint16_t cols) {
  if (!(e->flags & EXEC_PTY)) return false;
  struct winsize size = {.ws_row = rows, .ws_col = cols};
  if (e->out[0].source.fd >= 0) ioctl(e->out[0].source.fd, TIOCSWINSZ, &size);
  return true;
}

/* ---- start ---- */

static void start_failed(struct exec *e, uint8_t step, int error) {
  char message[96];
  const char *name = step_name(step), *why = strerror(error);
  size_t n = strlen(name), w = strlen(why);
  if (w > sizeof message - n - 3) w = sizeof message - n - 3;
  memcpy(message, name, n);
  memcpy(message + n, ": ", 2);
  memcpy(message + n + 2, why, w);
  message[n + 2 + w] = 0;
  if (e->conn != NULL && !e->forgotten) conn_error(e->conn, e->id, "START_FAILED", error, message);
  e->conn = NULL;
  if (!e->forgotten) the.remembered--;
  /* The id is free at once; the process is still to be reaped. */
  e->forgotten = e->ended = e->first_ended = true;
  if (e->flags & EXEC_MAIN) the.main_code = 0;
  e->timeout_at = 0;
  end_input(e);
  loop_close(&e->status);
  for (int i = 0; i < 2; i++) loop_close(&e->out[i].source);
  if (e->shepherd == 0) exec_free(e);
}

/* False when the exec is gone. */
static bool take_report(struct exec *e, const struct report *report) {
  /* Once the end is told, when that is soon: what a host waits for is not held up by a fork. */
  if (!(e->flags & EXEC_TOOL)) the.spare_at = now_ms() + (report->kind == REPORT_STARTED ? SPARE_MS : 0);
  if (report->kind == REPORT_FAILED) {
    start_failed(e, report->step, report->error);
    return false;
  }
  if (report->kind == REPORT_STARTED) {
    e->started = true;
    e->first = report->pid;
    if (e->first > the.highest) the.highest = e->first;
  } else {
    exec_first_ended(e, report->status, &report->usage);
  }
  return true;
}

static bool read_reports(struct exec *e) {
  struct report report;
  while (e->status.fd >= 0) {
    ssize_t got = read(e->status.fd, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got != (ssize_t)sizeof report) {
      loop_close(&e->status);
      return true;
    }
    if (!take_report(e, &report)) return false;
  }
  return true;
}

static void status_ready(struct source *s, uint32_t events) {
  (void)events;
  read_reports(container(s, struct exec, status));
}

bool exec_make_room(void) {
  if (the.remembered < MAX_EXECS) return true;
  for (struct exec *e = the.execs; e != NULL; e = e->next) {
    if (e->forgotten || !e->ended || e->flags & EXEC_MAIN) continue;
    if (e->out[0].ring.length > 0 || e->out[1].ring.length > 0) continue;
    exec_forget(e);
    return true;
  }
  return false;
}

static void append(struct exec *e) {
  struct exec **link = &the.execs;
  while (*link != NULL) link = &(*link)->next;
  *link = e;
  the.remembered++;
}

static struct exec *make_exec(struct conn *c, const struct exec_request *request) {
  struct exec *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  memcpy(e->id, request->id, sizeof e->id);
  e->flags = request->flags;
  e->conn = c;
  e->start_due = 1;
  e->status = e->input = e->out[0].source = e->out[1].source = CLOSED_SOURCE;
  e->in_close = UINT64_MAX;
  e->watch = NO_WATCH;
  e->grace_ms = request->grace_ms;
  e->output_limit = request->output_limit;
  e->oom_kills = oom_kills();
  /* Unless its end is seen, it was killed with everything else. */
  if (e->flags & EXEC_MAIN) the.main_code = 128 + SIGKILL;
  append(e);
  return e;
}

void exec_start(struct conn *c, const struct exec_request *request) {
  struct exec *e = make_exec(c, request);
  if (e == NULL) {
    conn_error(c, request->id, "START_FAILED", ENOMEM, "exec: out of memory");
    return;
  }
  struct spawned spawned;
  uint8_t step;
  int error = spawn(request, &spawned, &step);
  if (error != 0) {
    start_failed(e, step, error);
    return;
  }
  e->shepherd = spawned.pid;
  e->watch = spawned.watch;
  if (spawned.pid > the.highest) the.highest = spawned.pid;
  if (request->timeout_ms != 0) e->timeout_at = now_ms() + request->timeout_ms;
  if (request->timeout_ms > UINT64_MAX / 2) e->timeout_at = 0;
  if (spawned.input >= 0) loop_set(&e->input, spawned.input, input_ready);
  else e->in_gone = true;
  loop_set(&e->status, spawned.status, status_ready);
  loop_set(&e->out[0].source, spawned.output[0], stdout_ready);
  if (spawned.output[1] >= 0) loop_set(&e->out[1].source, spawned.output[1], stderr_ready);
  loop_watch(&e->status, EPOLLIN);
  loop_watch(&e->input, 0);
  exec_resume(e, 0);
  exec_resume(e, 1);
}

void exec_attach(struct exec *e, struct conn *c, uint64_t stdout_offset, uint64_t stderr_offset) {
  e->conn = c;
  e->out[0].sent = stdout_offset;
  e->out[1].sent = stderr_offset;
  e->end_due = e->ended;
  linger(e);
  e->in_ack_due = (e->flags & EXEC_STDIN) != 0 && !e->ended;
}

void exec_detach_all(struct conn *c) {
  for (struct exec *e = the.execs; e != NULL; e = e->next)
    if (e->conn == c) e->conn = NULL;
}

void exec_forget(struct exec *e) {
  if (!e->forgotten) the.remembered--;
  e->forgotten = true;
  e->conn = NULL;
  for (int i = 0; i < 2; i++) {
    ring_free(&e->out[i].ring);
    e->out[i].dropping = true;
    exec_resume(e, i);
  }
  if (e->flags & EXEC_MAIN) supervisor_end(0, 0);
  /* Background children still write to its pipes, and SIGPIPE must not end them. */
  if (e->shepherd == 0) exec_free(e);
}

/* ---- kill ---- */

void exec_signal(struct exec *e, uint8_t signal, uint8_t scope, uint32_t grace_ms) {
  if (e->shepherd == 0) return;
  bool tool = (e->flags & EXEC_TOOL) != 0;
  e->last_signal = signal;
  /* A kill of everything that is under way is not made smaller. */
  bool greater = e->kill == KILL_NOW && e->kill_scope >= scope;
  if ((signal == SIGKILL || grace_ms > 0) && !greater) {
    e->kill_scope = scope;
    e->kill = signal == SIGKILL ? KILL_NOW : KILL_GRACE;
    e->kill_at = now_ms() + (signal == SIGKILL ? 0 : grace_ms);
    e->kill_passes = 0;
  }
  if (signal == SIGKILL) {
    e->we_killed = true;
    return;
  }
  if (tool) kill(e->shepherd, signal);
  else if (scope == 0 && e->started && !e->first_ended) kill(e->first, signal);
  else if (scope == 1 && signal_descendants(e->shepherd, signal, false) < 0 && e->first > 0) kill(-e->first, signal);
}

/* One pass; true when nothing is left. */
static bool kill_pass(struct exec *e) {
  if (e->shepherd == 0) return true;
  if (e->flags & EXEC_TOOL) {
    kill(e->shepherd, SIGKILL);
    return true;
  }
  if (e->kill_scope == 0) {
    if (!e->started) return false;
    if (!e->first_ended) kill(e->first, SIGKILL);
    return true;
  }
  int living = kill_descendants(e->shepherd, false);
  if (living >= 0) return living == 0;
  /* No /proc: what the command started falls to us once its shepherd is gone. */
  if (e->first > 0) kill(-e->first, SIGKILL);
  kill(e->shepherd, SIGKILL);
  return true;
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

uint64_t exec_tick(struct exec *e, uint64_t now) {
  if (e->timeout_at != 0 && e->timeout_at <= now) {
    e->timeout_at = 0;
    e->end_flags |= END_TIMEOUT;
    e->we_killed = true;
    exec_signal(e, e->grace_ms > 0 ? SIGTERM : SIGKILL, 1, e->grace_ms);
  }
  if (e->kill == KILL_GRACE && e->kill_at <= now) {
    e->kill = KILL_NOW;
    e->we_killed = true;
    e->last_signal = SIGKILL;
  }
  if (e->kill == KILL_NOW && e->kill_at <= now) {
    if (kill_pass(e)) {
      e->kill = KILL_NONE;
      /* However long that took, what it has closed is still to be heard of. */
      if (e->first_ended && !e->ended) e->cut_off_at = now + CUT_OFF_MS;
    } else if (e->kill_passes < 100) e->kill_passes++;
    e->kill_at = now + 1 + e->kill_passes;
  }
  uint64_t next = e->timeout_at;
  if (e->kill != KILL_NONE) next = earlier(next, e->kill_at);
  if (!e->ended && e->first_ended) {
    if (e->cut_off_at > now) next = earlier(next, e->cut_off_at);
    else check_end(e);
  }
  return next;
}

/* ---- reaping ---- */

void exec_reaped(pid_t pid, int status, const struct rusage *usage) {
  for (struct exec *e = the.execs; e != NULL; e = e->next) {
    if (e->shepherd == pid) {
      /* What it still said comes first. A failed start ends here too, as a forgotten exec. */
      bool there = read_reports(e);
      e->shepherd = 0;
      watch_close(&e->watch);
      if (!(e->flags & EXEC_TOOL) && WIFSIGNALED(status)) {
        the.strays_at = now_ms();
        /* Killed together, perhaps: it would take an order and die of what it has not heard of yet. */
        spare_end();
      }
      if (e->forgotten) {
        exec_free(e);
        return;
      }
      if (!there || e->first_ended) return;
      if (e->flags & EXEC_TOOL && e->started) exec_first_ended(e, status, usage);
      else if (!e->started && !WIFSIGNALED(status)) start_failed(e, STEP_SHEPHERD, ECHILD);
      /* Its command was quick enough to kill it before it could tell of the start. */
      else e->started = true;
      return;
    }
    /* The command itself is ours to reap only after its shepherd was killed. */
    if (e->first == pid && e->started && !e->first_ended && !(e->flags & EXEC_TOOL)) {
      exec_first_ended(e, status, usage);
      return;
    }
  }
}
