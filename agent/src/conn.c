#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

enum { CHUNK = 65536, READ_SIZE = 262144, OUT_LIMIT = 262144, HELLO_LENGTH = 1 + 2 + TOKEN_BYTES };

void conn_close(struct conn *c) {
  if (!c->used) return;
  exec_detach_all(c);
  loop_close(&c->source);
  buffer_free(&c->in);
  buffer_free(&c->out);
  c->used = false;
}

/* ---- sending ---- */

static void finish(struct conn *c, struct writer *w) {
  /* A frame that could not be stored must not be skipped silently. */
  if (!frame_end(w)) c->closing = true;
}

void conn_error(struct conn *c, const char *id, const char *code, int error, const char *message) {
  struct writer w = frame_begin(&c->out, ERROR);
  put_text(&w, id);
  put_text(&w, code);
  put_u32(&w, (uint32_t)error);
  put_text(&w, message);
  finish(c, &w);
}

static void refuse(struct conn *c, const char *code, const char *message) {
  conn_error(c, "", code, 0, message);
  c->closing = true;
}

static void send_iov(struct conn *c, struct iovec *iov, int count) {
  size_t wanted = 0;
  for (int i = 0; i < count; i++) wanted += iov[i].iov_len;
  struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
  ssize_t put = sendmsg(c->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    c->closing = c->gone = true;
    return;
  }
  size_t sent = put > 0 ? (size_t)put : 0;
  if (sent < wanted) c->blocked = true;
  size_t buffered = sent < c->out.length ? sent : c->out.length;
  buffer_consume(&c->out, buffered);
  trim_later(&c->out);
  sent -= buffered;
  /* The first piece is the buffer itself; what is left of the others must be kept whole. */
  for (int i = 1; i < count; i++) {
    size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;
    sent -= skip;
    if (!buffer_append(&c->out, (uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip)) c->closing = true;
  }
}

static void send_output(struct conn *c, struct exec *e, int index) {
  struct stream *s = &e->out[index];
  struct iovec iov[4];
  int pieces = ring_peek(&s->ring, s->sent, CHUNK, iov + 2);
  uint32_t length = 0;
  for (int i = 0; i < pieces; i++) length += (uint32_t)iov[2 + i].iov_len;
  uint8_t header[5 + 4 + MAX_ID + 1 + 8];
  uint32_t id = (uint32_t)strlen(e->id), size = 5 + 4 + id + 1 + 8;
  store_u32(header, size - 4 + length);
  header[4] = OUTPUT;
  store_u32(header + 5, id);
  memcpy(header + 9, e->id, id);
  header[9 + id] = (uint8_t)(index + 1);
  store_u64(header + 10 + id, s->sent);
  iov[0] = (struct iovec){buffer_start(&c->out), c->out.length};
  iov[1] = (struct iovec){header, size};
  s->sent += length;
  send_iov(c, iov, 2 + pieces);
}

static void send_started(struct conn *c, struct exec *e) {
  struct writer w = frame_begin(&c->out, STARTED);
  put_text(&w, e->id);
  put_u32(&w, (uint32_t)e->first);
  put_u8(&w, e->start_due == 2);
  finish(c, &w);
  e->start_due = 0;
}

static void send_stdin_ack(struct conn *c, struct exec *e) {
  struct writer w = frame_begin(&c->out, STDIN_ACK);
  put_text(&w, e->id);
  put_u64(&w, e->in_written);
  put_u8(&w, e->in_gone);
  finish(c, &w);
  e->in_ack_due = false;
}

static void send_end(struct conn *c, struct exec *e) {
  int status = e->status_code;
  bool exited = (status & 0x7f) == 0;
  struct writer w = frame_begin(&c->out, END);
  put_text(&w, e->id);
  put_u8(&w, exited ? HOW_EXIT : HOW_SIGNAL);
  put_u32(&w, exited ? (uint32_t)(status >> 8 & 0xff) : (uint32_t)(status & 0x7f));
  put_u8(&w, e->end_flags | (e->flags & EXEC_MAIN ? END_MAIN : 0) | (exec_all_quiet(c) ? END_QUIET : 0));
  put_u64(&w, ring_total(&e->out[0].ring));
  put_u64(&w, ring_total(&e->out[1].ring));
  put_u64(&w, e->cpu_ms);
  put_u64(&w, e->max_rss);
  finish(c, &w);
  e->end_due = false;
}

/* Sends one round of what the exec has; true when there may be more. */
static bool send_exec(struct conn *c, struct exec *e) {
  bool more = false;
  if (!e->started) return false;
  if (e->start_due != 0) send_started(c, e);
  if (e->in_ack_due) send_stdin_ack(c, e);
  for (int i = 0; i < 2; i++) {
    if (c->blocked || c->closing) return false;
    if (e->out[i].sent >= ring_total(&e->out[i].ring)) continue;
    send_output(c, e, i);
    if (e->out[i].sent < ring_total(&e->out[i].ring)) more = true;
  }
  if (!more && e->end_due) send_end(c, e);
  return more;
}

/* What is attached first, then what waits in the buffer. */
static void conn_send(struct conn *c) {
  for (bool more = true; more && c->welcome && !c->closing;) {
    more = false;
    for (struct exec *e = the.execs; e != NULL && !c->blocked && !c->closing; e = e->next)
      if (e->conn == c && send_exec(c, e)) more = true;
    if (c->blocked) break;
  }
  if (c->out.length > 0 && !c->blocked) {
    struct iovec iov = {buffer_start(&c->out), c->out.length};
    send_iov(c, &iov, 1);
  }
}

/* What a host said before it died is still to be done: a command that it has on record must not be missing. */
static void hear_out(struct conn *c) {
  uint8_t bytes[4096];
  ssize_t got;
  c->closing = false;
  do {
    conn_parse(c);
    buffer_consume(&c->out, c->out.length);
    got = c->closing ? 0 : recv(c->source.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  } while (got > 0 && buffer_append(&c->in, bytes, (size_t)got));
}

void conn_flush(struct conn *c) {
  conn_send(c);
  /* Frames that were left unread while too many answers waited. */
  while (!c->blocked && !c->closing && frame_length(buffer_start(&c->in), c->in.length, MAX_FRAME) != 0) {
    conn_parse(c);
    conn_send(c);
  }
  if (c->closing) {
    if (c->gone && c->welcome) hear_out(c);
    conn_close(c);
    return;
  }
  uint32_t events = (c->blocked ? EPOLLOUT : 0) | (c->out.length < OUT_LIMIT ? EPOLLIN : 0);
  if (!loop_watch(&c->source, events)) conn_close(c);
}

/* ---- receiving ---- */

static bool same_token(const uint8_t *token) {
  uint8_t difference = 0;
  for (int i = 0; i < TOKEN_BYTES; i++) difference |= (uint8_t)(token[i] ^ the.token[i]);
  return difference == 0;
}

static bool on_hello(struct conn *c, struct reader *r) {
  uint16_t version = read_u16(r);
  const uint8_t *token = read_raw(r, TOKEN_BYTES);
  if (!read_done(r) || c->welcome) return false;
  if (version != PROTOCOL_VERSION) {
    refuse(c, "UNSUPPORTED", "this supervisor speaks version 1");
    return true;
  }
  if (the.claimed && !same_token(token)) {
    refuse(c, "DENIED", "the token is not the one this supervisor was claimed with");
    return true;
  }
  struct writer w = frame_begin(&c->out, WELCOME);
  put_u16(&w, PROTOCOL_VERSION);
  put_u64(&w, the.boot);
  put_u8(&w, the.claimed);
  finish(c, &w);
  memcpy(the.token, token, TOKEN_BYTES);
  the.claimed = c->welcome = true;
  return true;
}

static bool on_ping(struct conn *c, struct reader *r) {
  uint64_t cookie = read_u64(r);
  if (!read_done(r)) return false;
  struct writer w = frame_begin(&c->out, PONG);
  put_u64(&w, cookie);
  finish(c, &w);
  return true;
}

static char *copy_text(struct text text) {
  char *copy = malloc(text.length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text.bytes, text.length);
  copy[text.length] = 0;
  return copy;
}

static bool on_configure(struct conn *c, struct reader *r) {
  uint64_t deadline = read_u64(r);
  uint32_t uid = read_u32(r), gid = read_u32(r);
  struct text workdir = read_text(r);
  if (!read_done(r)) return false;
  char *copy = copy_text(workdir);
  int error = copy == NULL ? ENOMEM : workdir.length > 0 ? make_workdir(copy, uid, gid) : 0;
  if (error != 0) {
    free(copy);
    conn_error(c, "", "START_FAILED", error, "workdir");
    return true;
  }
  free(the.workdir);
  the.workdir = copy;
  the.uid = uid;
  the.gid = gid;
  the.deadline_at = deadline == 0 || deadline > UINT64_MAX / 2 ? 0 : now_ms() + deadline;
  the.configured = true;
  struct writer w = frame_begin(&c->out, CONFIGURED);
  finish(c, &w);
  return true;
}

static void attach(struct exec *e, struct conn *c, uint64_t stdout_offset, uint64_t stderr_offset) {
  if (e->conn != NULL && e->conn != c) {
    struct writer w = frame_begin(&e->conn->out, DETACHED);
    put_text(&w, e->id);
    finish(e->conn, &w);
  }
  exec_attach(e, c, stdout_offset, stderr_offset);
}

static void begin_exec(struct conn *c, struct exec_request *request) {
  struct exec *existing = exec_find(request->id);
  if (existing != NULL) {
    attach(existing, c, existing->out[0].ring.base, existing->out[1].ring.base);
    existing->start_due = 2;
  } else if (the.ending || !(the.configured || request->flags & EXEC_USER)) {
    conn_error(c, request->id, "UNSUPPORTED", 0, the.ending ? "the supervisor is shutting down" : "CONFIGURE comes first");
  } else if (request->flags & EXEC_MAIN && (request->flags & EXEC_TOOL || exec_has_main())) {
    conn_error(c, request->id, "UNSUPPORTED", 0, request->flags & EXEC_TOOL ? "a tool is no main command" : "there is a main command");
  } else if (!exec_make_room()) {
    conn_error(c, request->id, "LIMIT", 0, "too many execs");
  } else {
    exec_start(c, request);
  }
}

static bool on_exec(struct conn *c, struct reader *r) {
  struct exec_request request = {0};
  uint32_t argc, envc;
  read_id(r, request.id);
  request.flags = read_u8(r);
  request.uid = read_u32(r);
  request.gid = read_u32(r);
  struct text cwd = read_text(r);
  request.argv = read_list(r, &argc);
  request.env = read_list(r, &envc);
  request.rows = read_u16(r);
  request.cols = read_u16(r);
  request.timeout_ms = read_u64(r);
  request.grace_ms = read_u32(r);
  request.output_limit = read_u64(r);
  bool good = read_done(r) && request.argv != NULL && argc > 0 && request.env != NULL && request.flags < 32;
  if (good) {
    if (!(request.flags & EXEC_USER)) {
      request.uid = the.uid;
      request.gid = the.gid;
    }
    bool home = cwd.length == 0 && the.workdir != NULL && the.workdir[0] != 0 && !(request.flags & EXEC_TOOL);
    request.cwd = home                ? strdup(the.workdir)
                  : cwd.length == 0 ? strdup("/")
                                    : copy_text(cwd);
    if (request.cwd != NULL) begin_exec(c, &request);
    else conn_error(c, request.id, "START_FAILED", ENOMEM, "exec: out of memory");
  }
  free(request.cwd);
  free(request.argv);
  free(request.env);
  return good;
}

/* The exec a frame names; NULL after telling the host that there is none. */
static struct exec *find(struct conn *c, const char *id) {
  struct exec *e = exec_find(id);
  if (e == NULL) conn_error(c, id, "NOT_FOUND", 0, "no such exec");
  return e;
}

static bool on_attach(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint64_t offset[2] = {read_u64(r), 0};
  offset[1] = read_u64(r);
  if (!read_done(r)) return false;
  struct exec *e = find(c, id);
  if (e == NULL) return true;
  for (int i = 0; i < 2; i++) {
    if (offset[i] > ring_total(&e->out[i].ring)) return false;
    if (offset[i] >= e->out[i].ring.base) continue;
    conn_error(c, id, "OFFSET_LOST", 0, i == 0 ? "stdout" : "stderr");
    return true;
  }
  attach(e, c, offset[0], offset[1]);
  return true;
}

static bool on_ack(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint8_t stream = read_u8(r);
  uint64_t offset = read_u64(r);
  if (!read_done(r) || stream < 1 || stream > 2) return false;
  struct exec *e = find(c, id);
  if (e == NULL) return true;
  if (offset > ring_total(&e->out[stream - 1].ring)) return false;
  /* Who has taken over may not have read so far. */
  if (e->conn == c) exec_ack(e, stream - 1, offset);
  return true;
}

static bool on_stdin(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint64_t offset = read_u64(r);
  size_t length = (size_t)(r->end - r->at);
  const uint8_t *bytes = read_raw(r, length);
  if (!read_done(r)) return false;
  struct exec *e = find(c, id);
  return e == NULL || exec_stdin(e, offset, bytes, length);
}

static bool on_stdin_close(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint64_t offset = read_u64(r);
  if (!read_done(r)) return false;
  struct exec *e = find(c, id);
  if (e != NULL) exec_stdin_close(e, offset);
  return true;
}

static void send_ok(struct conn *c, uint8_t request, const char *id) {
  struct writer w = frame_begin(&c->out, OK);
  put_u8(&w, request);
  put_text(&w, id);
  finish(c, &w);
}

static bool on_resize(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint16_t rows = read_u16(r), cols = read_u16(r);
  if (!read_done(r)) return false;
  struct exec *e = find(c, id);
  if (e == NULL) return true;
  if (exec_resize(e, rows, cols)) send_ok(c, RESIZE, id);
  else conn_error(c, id, "UNSUPPORTED", 0, "the exec has no terminal");
  return true;
}

static bool on_signal(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  uint8_t signal = read_u8(r), scope = read_u8(r);
  uint32_t grace_ms = read_u32(r);
  if (!read_done(r) || scope > 1) return false;
  struct exec *e = find(c, id);
  if (e == NULL) return true;
  if (signal < 1 || signal > 64) {
    conn_error(c, id, "UNSUPPORTED", 0, "no such signal");
    return true;
  }
  exec_signal(e, signal, scope, grace_ms);
  send_ok(c, SIGNAL, id);
  return true;
}

static bool on_forget(struct conn *c, struct reader *r) {
  char id[MAX_ID + 1];
  read_id(r, id);
  if (!read_done(r)) return false;
  struct exec *e = exec_find(id);
  if (e != NULL && !e->ended) {
    conn_error(c, id, "UNSUPPORTED", 0, "the exec is still running");
    return true;
  }
  /* Forgetting what is not there is no error, so that a lost answer can be asked for again. */
  if (e != NULL) exec_forget(e);
  struct writer w = frame_begin(&c->out, FORGOTTEN);
  put_text(&w, id);
  finish(c, &w);
  return true;
}

static bool on_list(struct conn *c, struct reader *r) {
  if (!read_done(r)) return false;
  struct writer w = frame_begin(&c->out, LISTED);
  put_u32(&w, the.remembered);
  for (const struct exec *e = the.execs; e != NULL; e = e->next) {
    if (e->forgotten) continue;
    put_text(&w, e->id);
    put_u8(&w, e->ended ? 2 : 1);
    for (int i = 0; i < 2; i++) {
      put_u64(&w, e->out[i].ring.base);
      put_u64(&w, ring_total(&e->out[i].ring));
    }
  }
  finish(c, &w);
  return true;
}

static bool on_shutdown(struct conn *c, struct reader *r) {
  uint32_t grace_ms = read_u32(r);
  if (!read_done(r)) return false;
  send_ok(c, SHUTDOWN, "");
  supervisor_end(0, grace_ms);
  return true;
}

static void handle(struct conn *c, uint8_t type, struct reader *r) {
  static bool (*const handlers[])(struct conn *, struct reader *) = {
      [HELLO] = on_hello,   [PING] = on_ping,       [CONFIGURE] = on_configure,     [EXEC] = on_exec,
      [ATTACH] = on_attach, [ACK] = on_ack,         [STDIN] = on_stdin,             [STDIN_CLOSE] = on_stdin_close,
      [RESIZE] = on_resize, [SIGNAL] = on_signal,   [FORGET] = on_forget,           [LIST] = on_list,
      [SHUTDOWN] = on_shutdown};
  if (!c->welcome && type != HELLO) refuse(c, "NOT_CLAIMED", "HELLO comes first");
  else if (type < HELLO || type > SHUTDOWN) refuse(c, "PROTOCOL", "unknown frame");
  else if (!handlers[type](c, r)) refuse(c, "PROTOCOL", "malformed frame");
}

/* Handles the whole frames that `bytes` begins with; returns how many bytes they are. */
static size_t take_frames(struct conn *c, const uint8_t *bytes, size_t length) {
  size_t taken = 0;
  /* A small question can have a long answer, so each one waits until there is room. */
  while (!c->closing && c->out.length < OUT_LIMIT) {
    const uint8_t *at = bytes + taken;
    /* Who has not shown a token gets no room for anything larger. */
    long frame = frame_length(at, length - taken, c->welcome ? MAX_FRAME : HELLO_LENGTH);
    if (frame == 0) break;
    if (frame < 0) {
      refuse(c, "PROTOCOL", "frame length");
      break;
    }
    struct reader r = reader_of(at + 5, (size_t)frame - 5);
    handle(c, at[4], &r);
    taken += (size_t)frame;
  }
  return taken;
}

void conn_parse(struct conn *c) { buffer_consume(&c->in, take_frames(c, buffer_start(&c->in), c->in.length)); }

/* How much of the frame that has begun is still to come; 0 when none has, or what waits is whole. */
static size_t missing(const struct conn *c) {
  if (c->in.length < 4) return 0;
  struct reader r = reader_of(buffer_start(&c->in), 4);
  size_t whole = 4 + (size_t)read_u32(&r);
  return whole > c->in.length && whole <= 4 + MAX_FRAME ? whole - c->in.length : 0;
}

/* The rest of a large frame goes where its beginning is. */
static ssize_t receive_rest(struct conn *c, size_t length) {
  if (!buffer_reserve(&c->in, length)) return 0;
  ssize_t got = recv(c->source.fd, buffer_start(&c->in) + c->in.length, length, MSG_DONTWAIT);
  if (got <= 0) return got;
  c->in.length += (size_t)got;
  conn_parse(c);
  return got;
}

/* What is whole is handled where it lies; only a frame that has begun waits in the buffer. */
static ssize_t receive(struct conn *c) {
  static uint8_t bytes[READ_SIZE];
  ssize_t got = recv(c->source.fd, bytes, c->welcome ? sizeof bytes : HELLO_LENGTH + 4, MSG_DONTWAIT);
  if (got <= 0) return got;
  size_t taken = c->in.length == 0 ? take_frames(c, bytes, (size_t)got) : 0;
  if (!buffer_append(&c->in, bytes + taken, (size_t)got - taken)) c->closing = true;
  else conn_parse(c);
  return got;
}

static void conn_ready(struct source *s, uint32_t events) {
  struct conn *c = container(s, struct conn, source);
  if (events & EPOLLOUT) c->blocked = false;
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  if (c->out.length >= OUT_LIMIT && !(events & (EPOLLHUP | EPOLLERR))) return;
  size_t rest = missing(c);
  ssize_t got = rest > 0 ? receive_rest(c, rest) : receive(c);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) c->closing = c->gone = true;
  trim_later(&c->in);
}

static struct conn *free_conn(void) {
  struct conn *oldest = NULL;
  for (int i = 0; i < MAX_CONNS; i++) {
    struct conn *c = &the.conns[i];
    if (!c->used) return c;
    if (!c->welcome && (oldest == NULL || c->hello_by < oldest->hello_by)) oldest = c;
  }
  /* Connections that say nothing cannot keep the host out. */
  if (oldest != NULL) conn_close(oldest);
  return oldest;
}

bool conn_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
  struct conn *c = free_conn();
  struct conn extra = {0};
  if (c == NULL) {
    conn_error(&extra, "", "LIMIT", 0, "too many connections");
    if (send(fd, extra.out.bytes, extra.out.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) errno = 0;
    buffer_free(&extra.out);
    close(fd);
    return true;
  }
  *c = (struct conn){.used = true, .hello_by = now_ms() + HELLO_MS};
  loop_set(&c->source, fd, conn_ready);
  if (!loop_watch(&c->source, EPOLLIN)) conn_close(c);
  return true;
}
