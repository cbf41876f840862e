#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

struct supervisor the;
static struct source listener = {.fd = -1}, signals = {.fd = -1};
static int memory_events = -1;
enum { LAST_WORDS_MS = 500, LISTEN_AGAIN_MS = 100 };

/* ---- out of memory ---- */

/* Opened once: version 2's memory.events or version 1's memory.oom_control. */
static void open_memory_events(const char *cgroup) {
  static const char *const names[] = {"memory.events", "memory.oom_control", "memory/memory.oom_control"};
  int directory = open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  for (int i = 0; i < 3 && memory_events < 0; i++) memory_events = openat(directory, names[i], O_RDONLY | O_CLOEXEC);
  close(directory);
}

uint64_t oom_kills(void) {
  char text[512];
  ssize_t length = memory_events < 0 ? 0 : pread(memory_events, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, "oom_kill ", 9) != 0) continue;
    const char *digits = line + 9;
    uint64_t kills;
    return number(&digits, &kills) ? kills : 0;
  }
  return 0;
}

/* ---- the sandbox's directory ---- */

int make_workdir(const char *path, uint32_t uid, uint32_t gid) {
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  char name[256];
  while (at >= 0) {
    path += strspn(path, "/");
    size_t length = strcspn(path, "/");
    if (length == 0) break;
    if (length >= sizeof name) {
      close(at);
      return ENAMETOOLONG;
    }
    memcpy(name, path, length);
    name[length] = 0;
    path += length;
    bool made = mkdirat(at, name, 0755) == 0;
    bool last = path[strspn(path, "/")] == 0;
    /* What was just made is no link; anything else may be one that the image has. */
    int next = openat(at, name, (made ? O_NOFOLLOW | O_RDONLY : O_PATH) | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    close(at);
    at = next;
    errno = error;
    if (at >= 0 && made && last && (uid != geteuid() || gid != getegid()) && fchown(at, uid, gid) != 0) {
      error = errno;
      close(at);
      return error;
    }
  }
  if (at < 0) return errno;
  close(at);
  return 0;
}

/* ---- end of life ---- */

static void signal_all(int signal) {
  /* As pid 1, -1 is the sandbox; otherwise it would be the machine. */
  if (the.pid == 1) kill(-1, signal);
  else if (signal == SIGKILL) kill_descendants(the.pid, false);
  else signal_descendants(the.pid, signal, false);
}

void supervisor_end(int code, uint32_t grace_ms) {
  uint64_t now = now_ms();
  if (the.ending && the.end_kill_at <= now + grace_ms) return;
  if (!the.ending) the.exit_code = code;
  the.ending = true;
  spare_end();
  the.end_kill_at = now + grace_ms;
  the.end_by = the.end_kill_at + 2000;
  if (grace_ms > 0) signal_all(SIGTERM);
}

static bool no_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

/* True when the last output and every end are on their way. */
static bool all_told(void) {
  for (const struct exec *e = the.execs; e != NULL; e = e->next)
    if (!e->forgotten && (!e->ended || (e->conn != NULL && e->end_due))) return false;
  for (int i = 0; i < MAX_CONNS; i++)
    if (the.conns[i].used && the.conns[i].out.length > 0) return false;
  return true;
}

/* Exits when everything is over; otherwise says when to look again. */
static uint64_t end_tick(uint64_t now) {
  bool over = no_children();
  if ((over && all_told()) || now >= the.end_by) _exit(the.exit_code != 0 ? the.exit_code : the.main_code);
  if (over) {
    if (the.end_by > now + LAST_WORDS_MS) the.end_by = now + LAST_WORDS_MS;
    return now + 1;
  }
  if (now < the.end_kill_at) return the.end_kill_at;
  if (now >= the.end_pass_at) {
    signal_all(SIGKILL);
    the.end_pass_at = now + 5;
  }
  return the.end_pass_at;
}

/* ---- children ---- */

static void reap(void) {
  for (;;) {
    int status;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage);
    if (pid <= 0) return;
    if (WIFSTOPPED(status)) {
      /* A stopped shepherd would keep its command's end from us. Strays are stopped by us, before they are killed. */
      if (spare_is(pid)) kill(pid, SIGCONT);
      for (const struct exec *e = the.execs; e != NULL; e = e->next)
        if (e->shepherd == pid) kill(pid, SIGCONT);
      continue;
    }
    if (spare_is(pid)) spare_end();
    else exec_reaped(pid, status, &usage);
  }
}

static uint64_t stray_tick(uint64_t now) {
  if (now < the.strays_at) return the.strays_at;
  int left = kill_descendants(the.pid, true);
  if (left < 0) left = kill_unknown_children();
  reap();
  if (left > 0) {
    if (the.stray_passes < 100) the.stray_passes++;
    return the.strays_at = now + 1 + the.stray_passes;
  }
  the.strays_at = the.stray_passes = 0;
  /* The status went with the shepherd that had collected it. */
  static const struct rusage unknown;
  for (struct exec *e = the.execs; e != NULL; e = e->next)
    if (e->shepherd == 0 && e->started && !e->first_ended) exec_first_ended(e, SIGKILL, &unknown);
  return 0;
}

static void signals_ready(struct source *s, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info;
  while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD) reap();
    /* A pid of 0 is one outside our namespace; a code other than kill's lets the sender write what it likes. */
    bool outside = the.pid != 1 || (info.ssi_pid == 0 && info.ssi_code == SI_USER);
    if (info.ssi_signo == SIGTERM && outside) supervisor_end(0, TERM_GRACE_MS);
  }
}

/* ---- loop ---- */

static void listener_ready(struct source *s, uint32_t events) {
  (void)events;
  if (conn_accept(s->fd)) return;
  loop_pause(s);
  the.listen_at = now_ms() + LISTEN_AGAIN_MS;
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

static uint64_t tick(uint64_t now) {
  uint64_t next = 0;
  for (struct exec *e = the.execs; e != NULL; e = e->next) next = earlier(next, exec_tick(e, now));
  if (the.strays_at != 0) next = earlier(next, stray_tick(now));
  if (the.deadline_at != 0 && the.deadline_at <= now) {
    the.deadline_at = 0;
    the.exit_code = EXIT_DEADLINE;
    the.ending = false;
    supervisor_end(EXIT_DEADLINE, 0);
  }
  if (the.linger_at != 0 && the.linger_at <= now) {
    the.linger_at = 0;
    supervisor_end(0, 0);
  }
  if (the.ending) next = earlier(next, end_tick(now));
  next = earlier(next, the.linger_at);
  next = earlier(next, the.deadline_at);
  if (the.trim_at != 0 && the.trim_at <= now) trim_buffers();
  next = earlier(next, the.trim_at);
  if (the.listen_at != 0 && the.listen_at <= now) {
    the.listen_at = 0;
    loop_watch(&listener, EPOLLIN);
  }
  next = earlier(next, the.listen_at);
  for (int i = 0; i < MAX_CONNS; i++) {
    struct conn *c = &the.conns[i];
    if (c->used && !c->welcome && c->hello_by <= now) c->closing = true;
    if (c->used && (c->closing || !c->blocked)) conn_flush(c);
    if (c->used && !c->welcome) next = earlier(next, c->hello_by);
  }
  return next;
}

static _Noreturn void run(void) {
  for (;;) {
    uint64_t now = now_ms(), next = tick(now);
    if (the.spare_at != 0 && the.spare_at <= now) {
      the.spare_at = 0;
      spare_make();
    }
    next = earlier(next, the.spare_at);
    uint64_t wait = next == 0 ? 3600000 : next > now ? next - now : 0;
    loop_wait(wait > 3600000 ? 3600000 : (int)wait);
  }
}

/* ---- start ---- */

static bool open_signals(void) {
  sigset_t all, ours;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  sigaddset(&ours, SIGTERM);
  int fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return false;
  loop_set(&signals, fd, signals_ready);
  return loop_watch(&signals, EPOLLIN);
}

static void scrub_environment(void) {
  extern char **environ;
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
    memset(*variable, 0, strlen(*variable));
    *variable = NULL;
  }
}

/* 256 commands need four descriptors each. */
static void take_descriptors(void) {
  getrlimit(RLIMIT_NOFILE, &the.files);
  struct rlimit most = {the.files.rlim_max, the.files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most);
}

int supervise_main(int argc, char **argv) {
  const char *socket_path = NULL, *lingering = NULL, *cgroup = "/sys/fs/cgroup", *handed = NULL, *only = NULL;
  const char *privileged = NULL;
  for (int i = 1; i < argc; i += 2) {
    const char **option = strcmp(argv[i], "--socket") == 0         ? &socket_path
                          : strcmp(argv[i], "--main-linger") == 0  ? &lingering
                          : strcmp(argv[i], "--cgroup") == 0       ? &cgroup
                          : strcmp(argv[i], "--listen-fd") == 0    ? &handed
                          : strcmp(argv[i], "--only-user") == 0    ? &only
                          : strcmp(argv[i], "--privileged") == 0   ? &privileged
                                                                   : NULL;
    if (option == NULL || i + 1 == argc) return complain(EXIT_START_FAILED, argv[i], EINVAL);
    *option = argv[i + 1];
  }
  if ((socket_path == NULL) == (handed == NULL)) return complain(EXIT_START_FAILED, "--socket or --listen-fd", EINVAL);
  uint64_t user = 0;
  if (only != NULL && (!number(&only, &user) || *only != 0 || user == 0 || user >= UINT32_MAX))
    return complain(EXIT_START_FAILED, "--only-user", EINVAL);
  the.only_user = (uint32_t)user;
  if (privileged != NULL && (strcmp(privileged, "root") != 0 || only != NULL))
    return complain(EXIT_START_FAILED, "--privileged", EINVAL);
  the.privileged = privileged != NULL;
  the.linger_ms = MAIN_LINGER_MS;
  if (lingering != NULL && (!number(&lingering, &the.linger_ms) || *lingering != 0 || the.linger_ms > UINT32_MAX))
    return complain(EXIT_START_FAILED, "--main-linger", EINVAL);
  heed_signals();
  read_bounding_set();
  /* Our own five capabilities stay; none can be had beside them. */
  if (only != NULL && drop_bounding_set() != 0) return complain(EXIT_START_FAILED, "capability bounding set", errno);
  if (only != NULL) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  scrub_environment();
  the.pid = the.highest = getpid();
  uint64_t handed_fd = 0;
  int fd = handed != NULL && number(&handed, &handed_fd) && handed_fd < 1024 ? take_listener((int)handed_fd) : -1;
  if (handed != NULL && fd < 0) return complain(EXIT_START_FAILED, "--listen-fd", errno);
  close_from(fd < 0 ? 3 : fd + 1, 65535);
  while ((the.null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && the.null < 3) fcntl(the.null, F_SETFD, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  take_descriptors();
  open_memory_events(cgroup);
  if (getrandom(&the.boot, sizeof the.boot, 0) != (ssize_t)sizeof the.boot || !loop_open() || !open_signals())
    return complain(EXIT_START_FAILED, "start", errno);
  if (fd < 0 && (fd = open_listener(socket_path)) < 0) return complain(EXIT_START_FAILED, socket_path, errno);
  loop_set(&listener, fd, listener_ready);
  if (!loop_watch(&listener, EPOLLIN)) return complain(EXIT_START_FAILED, "listen", errno);
  run();
}
