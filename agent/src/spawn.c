#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "shepherd.h"
#include "tools.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

const char *step_name(uint8_t step) {
  static const char *const names[] = {"exec",   "fork",   "pipe",  "pty",    "capabilities", "setgroups",
                                      "setgid", "setuid", "chdir", "execve", "shepherd"};
  return step < sizeof names / sizeof *names ? names[step] : names[0];
}

void close_from(int first, int last) {
  if (first <= last && syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = first; fd <= last; fd++) close(fd);
}

void heed_signals(void) {
  struct sigaction action;
  for (int signal = 1; signal < NSIG; signal++) {
    if (sigaction(signal, NULL, &action) != 0 || action.sa_handler != SIG_IGN) continue;
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, NULL);
  }
}

/* Beside a tool's STATUS_FD. */
enum { WATCH_FD = STATUS_FD + 1 };

static _Noreturn void run_tool(const struct exec_request *request, unsigned *unsaid) {
  struct report report = {.kind = REPORT_FAILED, .pid = getpid()};
  setsid();
  unblock_signals();
  setrlimit(RLIMIT_NOFILE, &the.files);
  report.error = become(request->uid, request->gid, &report.step);
  /* Changing the user may have made this copy of our memory readable again. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (report.error == 0) {
    report.step = STEP_CHDIR;
    report.error = chdir(request->cwd) == 0 ? 0 : errno;
  }
  if (report.error == 0) report.kind = REPORT_STARTED;
  tell(&report);
  close(STATUS_FD);
  if (report.error != 0) _exit(127);
  memset(the.token, 0, sizeof the.token);
  if (unsaid != NULL) tool_watch_shares(WATCH_FD, unsaid);
  int argc = 0;
  while (request->argv[argc] != NULL) argc++;
  _exit(tool_main(argc, request->argv));
}

static void close_all(int *fds, int count) {
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
}

static int make_pipe(int *reading, int *writing) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return errno;
  *reading = fds[0];
  *writing = fds[1];
  return 0;
}

static int open_null(void) {
  if (the.null >= 0) return fcntl(the.null, F_DUPFD_CLOEXEC, 3);
  int reading, writing;
  if (make_pipe(&reading, &writing) != 0) return -1;
  close(writing);
  return reading;
}

static int make_terminal(const struct exec_request *request, struct spawned *host, struct ends *child) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return errno;
  host->output[0] = master;
  int unlock = 0;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0) return errno;
  int slave = -1;
#ifdef TIOCGPTPEER
  slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
#endif
  if (slave < 0) {
    unsigned number;
    char name[32] = "/dev/pts/";
    if (ioctl(master, TIOCGPTN, &number) != 0) return errno;
    decimal(name + strlen(name), number);
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return errno;
  }
  child->input = slave;
  struct winsize size = {.ws_row = request->rows, .ws_col = request->cols};
  ioctl(master, TIOCSWINSZ, &size);
  /* So that the command may open its terminal by name; without the right to do it the descriptors still work. */
  if (fchown(slave, request->uid, (gid_t)-1) != 0) errno = 0;
  child->output[0] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
  child->output[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
  host->input = fcntl(master, F_DUPFD_CLOEXEC, 3);
  return child->output[0] < 0 || child->output[1] < 0 || host->input < 0 ? errno : 0;
}

static int make_pipes(const struct exec_request *request, struct spawned *host, struct ends *child) {
  int error = make_pipe(&host->output[0], &child->output[0]);
  if (error == 0) error = make_pipe(&host->output[1], &child->output[1]);
  if (error != 0) return error;
  if (request->flags & EXEC_STDIN) return make_pipe(&child->input, &host->input);
  child->input = open_null();
  return child->input < 0 ? errno : 0;
}

static int fork_child(const struct exec_request *request, const struct ends *child, const struct spawned *host, pid_t *pid) {
  int highest = the.highest_fd;
  const int fds[] = {child->input, child->output[0], child->output[1], child->status, host->input, host->output[0], host->output[1], host->status, host->watch.inotify};
  for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
    if (fds[i] > highest) highest = fds[i];
  *pid = fork();
  if (*pid < 0) return errno;
  if (*pid > 0) return 0;
  /* Out of the way of what is put where it may be. */
  int inotify = host->watch.inotify < 0 ? -1 : fcntl(host->watch.inotify, F_DUPFD_CLOEXEC, WATCH_FD + 1);
  wear(child);
  bool watches = inotify >= 0 && dup3(inotify, WATCH_FD, O_CLOEXEC) >= 0;
  close_from(watches ? WATCH_FD + 1 : STATUS_FD + 1, inotify > highest ? inotify : highest);
  if (request->flags & EXEC_TOOL) run_tool(request, watches ? host->watch.unsaid : NULL);
  shepherd_main(request);
}

int spawn(const struct exec_request *request, struct spawned *host, uint8_t *step) {
  struct ends child = {-1, {-1, -1}, -1};
  *host = (struct spawned){.input = -1, .output = {-1, -1}, .status = -1, .watch = NO_WATCH};
  *step = STEP_PIPE;
  int error = make_pipe(&host->status, &child.status);
  if (error == 0 && request->flags & EXEC_PTY) {
    *step = STEP_PTY;
    error = make_terminal(request, host, &child);
  } else if (error == 0) {
    error = make_pipes(request, host, &child);
  }
  if (error == 0) {
    *step = STEP_FORK;
    if (request->flags & EXEC_TOOL && watch_is_sync(request->argv)) watch_open(&host->watch, request->uid);
    bool is_tool = (request->flags & EXEC_TOOL) != 0;
    host->pid = is_tool ? 0 : spare_take(request, &child);
    if (host->pid == 0) error = fork_child(request, &child, host, &host->pid);
  }
  close_all(&child.input, 1);
  close_all(child.output, 2);
  close_all(&child.status, 1);
  if (error != 0) watch_close(&host->watch);
  int *ours[] = {&host->input, &host->output[0], &host->output[1], &host->status};
  for (int i = 0; i < 4; i++) {
    if (*ours[i] < 0) continue;
    if (error == 0) fcntl(*ours[i], F_SETFL, fcntl(*ours[i], F_GETFL) | O_NONBLOCK);
    else close(*ours[i]);
  }
  return error;
}
